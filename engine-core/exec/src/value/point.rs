//! openCypher's points: constructor, components, distance.

use super::error::Error;
use std::sync::Arc;
use tidegraph_types::point::{Crs, Point};
use tidegraph_types::{Map, Value};

/// Radius of the Earth in metres that distances are computed with, as in Neo4j.
const RADIUS: f64 = 6_378_140.0;

/// `point({x: 1, y: 2})`, `point({longitude: 12.5, latitude: 55.7, height: 3})`, with `crs` or `srid`.
pub(crate) fn make(name: &'static str, value: &Value) -> Result<Value, Error> {
    let Value::Map(map) = value else { return Err(Error::of_type(name, "a map", value)) };
    if map.values().any(Value::is_null) {
        return Ok(Value::Null);
    }
    of_map(map)
        .map(|point| Value::Point(Arc::new(point)))
        .map_err(|reason| Error::invalid(name, value, &reason))
}

fn of_map(map: &Map) -> Result<Point, String> {
    let (mut plane, mut earth) = ([None; 3], [None; 3]);
    let mut crs = None;
    for (key, value) in map {
        let key = key.as_str().unwrap_or_default();
        let place = match key.to_ascii_lowercase().as_str() {
            "x" => &mut plane[0],
            "y" => &mut plane[1],
            "z" => &mut plane[2],
            "longitude" => &mut earth[0],
            "latitude" => &mut earth[1],
            "height" => &mut earth[2],
            "crs" | "srid" => {
                let found = match (value.as_str(), value.as_i64()) {
                    (Some(name), _) => Crs::of_name(name),
                    (None, Some(srid)) => Crs::of_srid(srid),
                    (None, None) => None,
                };
                let found =
                    found.ok_or_else(|| format!("{key} {} is not a known one", value.for_message()))?;
                if crs.is_some_and(|crs| crs != found) {
                    return Err("crs and srid name different systems".to_owned());
                }
                crs = Some(found);
                continue;
            }
            _ => return Err(format!("there is no component {key:?}")),
        };
        *place =
            Some(value.as_f64().ok_or_else(|| format!("{key} is a {}, not a number", value.type_name()))?);
    }
    let is_earth = earth.iter().any(Option::is_some);
    if is_earth && plane.iter().any(Option::is_some) && plane[2].is_none() {
        return Err("x and y stand beside longitude and latitude".to_owned());
    }
    let mut coordinates = if is_earth { earth } else { plane };
    if is_earth && coordinates[2].is_none() {
        coordinates[2] = plane[2];
    }
    let [Some(x), Some(y), z] = coordinates else {
        return Err("two coordinates must be given: x and y, or longitude and latitude".to_owned());
    };
    let crs = crs.unwrap_or(match (is_earth, z.is_some()) {
        (false, false) => Crs::Cartesian,
        (false, true) => Crs::Cartesian3d,
        (true, false) => Crs::Wgs84,
        (true, true) => Crs::Wgs843d,
    });
    if is_earth && !crs.is_geographic() {
        return Err(format!("{} points have no longitude and latitude", crs.name()));
    }
    let all: Vec<f64> = [Some(x), Some(y), z].into_iter().flatten().collect();
    Point::new(crs, &all)
}

/// Returns a component of a point.
pub(crate) fn component(point: &Point, key: &str) -> Result<Value, Error> {
    let coordinates = point.coordinates();
    let geographic = point.crs().is_geographic();
    let number = match key {
        "x" => coordinates.first(),
        "y" => coordinates.get(1),
        "z" => coordinates.get(2),
        "longitude" if geographic => coordinates.first(),
        "latitude" if geographic => coordinates.get(1),
        "height" if geographic => coordinates.get(2),
        "crs" => return Ok(Value::from(point.crs().name())),
        "srid" => return Ok(Value::Long(i64::from(point.srid()))),
        _ => None,
    };
    match number {
        Some(number) => Ok(Value::Double(*number)),
        None => {
            let (what, key) = (format!("a {} point", point.crs().name()), Value::string(key));
            Err(Error::argument(what, "has no such component", &key))
        }
    }
}

fn points<'v>(name: &'static str, args: &'v [Value]) -> Result<Vec<&'v Point>, Error> {
    args.iter()
        .map(|value| match value {
            Value::Point(point) => Ok(&**point),
            other => Err(Error::of_type(name, "points", other)),
        })
        .collect()
}

/// Returns the distance of two points, in metres on the Earth; null for points of different systems.
pub(crate) fn distance(name: &'static str, args: &[Value]) -> Result<Value, Error> {
    let [a, b] = points(name, args)?[..] else { return Ok(Value::Null) };
    if a.crs() != b.crs() {
        return Ok(Value::Null);
    }
    let (a, geographic, b) = (a.coordinates(), a.crs().is_geographic(), b.coordinates());
    if !geographic {
        let squares = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b));
        return Ok(Value::Double(squares.sum::<f64>().sqrt()));
    }
    // The haversine formula, at the average height.
    let half = |a: f64, b: f64| ((b - a).to_radians() / 2.0).sin().powi(2);
    let angle = half(a[1], b[1]) + a[1].to_radians().cos() * b[1].to_radians().cos() * half(a[0], b[0]);
    let height = |point: &[f64]| point.get(2).copied().unwrap_or(0.0);
    let radius = RADIUS + (height(a) + height(b)) / 2.0;
    let along = 2.0 * radius * angle.clamp(0.0, 1.0).sqrt().asin();
    Ok(Value::Double(along.hypot(height(a) - height(b))))
}

/// Returns whether a point is in a box. Args point, lower left corner, upper right corner; null for points of different
/// systems. On the Earth a box may cross the line of 180 degrees.
pub(crate) fn within_box(name: &'static str, args: &[Value]) -> Result<Value, Error> {
    let [point, low, high] = points(name, args)?[..] else { return Ok(Value::Null) };
    if point.crs() != low.crs() || point.crs() != high.crs() {
        return Ok(Value::Null);
    }
    let geographic = point.crs().is_geographic();
    let all = point.coordinates().iter().zip(low.coordinates().iter().zip(high.coordinates()));
    let inside = all.enumerate().all(|(at, (x, (low, high)))| {
        if geographic && at == 0 && low > high { x >= low || x <= high } else { low <= x && x <= high }
    });
    Ok(Value::Bool(inside))
}
