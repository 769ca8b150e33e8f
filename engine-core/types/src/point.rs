//! Points of a plane, of space, and of the Earth, as openCypher has them.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt::{self, Display, Formatter};
use std::hash::{Hash, Hasher};

/// How the coordinates of a point are read. The numbers are those of the EPSG register and of Neo4j.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Crs {
    /// `x` and `y` of a plane.
    Cartesian,
    /// `x`, `y` and `z` of space.
    Cartesian3d,
    /// Longitude and latitude in degrees.
    Wgs84,
    /// Longitude and latitude in degrees, height in metres.
    Wgs843d,
}

impl Crs {
    /// Returns the number of the system.
    #[must_use]
    pub fn srid(self) -> u32 {
        match self {
            Self::Cartesian => 7203,
            Self::Cartesian3d => 9157,
            Self::Wgs84 => 4326,
            Self::Wgs843d => 4979,
        }
    }

    /// Returns the system of a number.
    #[must_use]
    pub fn of_srid(srid: i64) -> Option<Self> {
        [Self::Cartesian, Self::Cartesian3d, Self::Wgs84, Self::Wgs843d]
            .into_iter()
            .find(|crs| i64::from(crs.srid()) == srid)
    }

    /// Returns the name of the system.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cartesian => "cartesian",
            Self::Cartesian3d => "cartesian-3d",
            Self::Wgs84 => "wgs-84",
            Self::Wgs843d => "wgs-84-3d",
        }
    }

    /// Returns the system of a name, in any case.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        [Self::Cartesian, Self::Cartesian3d, Self::Wgs84, Self::Wgs843d]
            .into_iter()
            .find(|crs| crs.name().eq_ignore_ascii_case(name))
    }

    /// Whether the coordinates are degrees on the Earth.
    #[must_use]
    pub fn is_geographic(self) -> bool {
        matches!(self, Self::Wgs84 | Self::Wgs843d)
    }

    /// Returns the number of coordinates.
    #[must_use]
    pub fn dimensions(self) -> usize {
        match self {
            Self::Cartesian | Self::Wgs84 => 2,
            Self::Cartesian3d | Self::Wgs843d => 3,
        }
    }
}

/// A point. Its coordinates are finite, and no coordinate is -0.0.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Point {
    crs: Crs,
    /// The third is 0 where the system has two.
    coordinates: [f64; 3],
}

impl Point {
    /// Makes a point. The error says which coordinate is wrong.
    ///
    /// # Errors
    ///
    /// If the number of coordinates is not the system's, one is not finite, or a latitude is beyond 90 degrees.
    pub fn new(crs: Crs, coordinates: &[f64]) -> Result<Self, String> {
        if coordinates.len() != crs.dimensions() {
            let (given, expected) = (coordinates.len(), crs.dimensions());
            return Err(format!("a {} point has {expected} coordinates, not {given}", crs.name()));
        }
        let mut all = [0.0; 3];
        for (to, from) in all.iter_mut().zip(coordinates) {
            if !from.is_finite() {
                return Err(format!("the coordinate {from} is not finite"));
            }
            // 0.0 and -0.0 are one place.
            *to = from + 0.0;
        }
        if crs.is_geographic() {
            if all[1].abs() > 90.0 {
                return Err(format!("the latitude {} is not in -90 to 90", all[1]));
            }
            // A longitude goes around.
            if all[0].abs() > 180.0 {
                all[0] = (all[0] + 180.0).rem_euclid(360.0) - 180.0;
            }
        }
        Ok(Self { crs, coordinates: all })
    }

    /// Returns the system.
    #[must_use]
    pub fn crs(&self) -> Crs {
        self.crs
    }

    /// Returns the number of the system.
    #[must_use]
    pub fn srid(&self) -> u32 {
        self.crs.srid()
    }

    /// Returns the coordinates: two or three.
    #[must_use]
    pub fn coordinates(&self) -> &[f64] {
        &self.coordinates[..self.crs.dimensions()]
    }
}

impl PartialEq for Point {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Point {}

impl Ord for Point {
    /// Compares the numbers of the systems, then coordinate by coordinate.
    fn cmp(&self, other: &Self) -> Ordering {
        let coordinates = self.coordinates.iter().zip(&other.coordinates);
        self.srid().cmp(&other.srid()).then_with(|| {
            coordinates.map(|(a, b)| a.total_cmp(b)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
        })
    }
}

impl PartialOrd for Point {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for Point {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.crs.hash(state);
        for coordinate in &self.coordinates {
            coordinate.to_bits().hash(state);
        }
    }
}

impl Display for Point {
    /// Writes the point as openCypher text that makes it.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("point({")?;
        for (name, coordinate) in ["x", "y", "z"].iter().zip(self.coordinates()) {
            write!(f, "{name}: {coordinate:?}, ")?;
        }
        write!(f, "crs: '{}'}})", self.crs.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_has_the_coordinates_of_its_system() {
        let point = Point::new(Crs::Wgs84, &[190.0, -0.0]).unwrap();
        assert_eq!(point.coordinates(), [-170.0, 0.0], "a longitude goes around");
        assert_eq!(point.to_string(), "point({x: -170.0, y: 0.0, crs: 'wgs-84'})");
        assert_eq!(point, Point::new(Crs::Wgs84, &[-170.0, 0.0]).unwrap());
        assert_ne!(point, Point::new(Crs::Cartesian, &[-170.0, 0.0]).unwrap());
        let wrong = |crs, coordinates: &[f64]| Point::new(crs, coordinates).unwrap_err();
        assert_eq!(wrong(Crs::Cartesian, &[1.0]), "a cartesian point has 2 coordinates, not 1");
        assert_eq!(wrong(Crs::Cartesian, &[1.0, f64::NAN]), "the coordinate NaN is not finite");
        assert_eq!(wrong(Crs::Wgs84, &[1.0, 90.5]), "the latitude 90.5 is not in -90 to 90");
        assert_eq!(Crs::of_srid(4979), Crs::of_name("WGS-84-3D"));
    }
}
