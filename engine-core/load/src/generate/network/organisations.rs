//! Companies and universities, and who works and studied there.

use super::{
    CITIES_PER_COUNTRY, CITY, COMPANY, COMPANY_IS_LOCATED_IN, COUNTRIES, COUNTRY, Details, Element, Elements,
    STUDY_AT, UNIVERSITY, UNIVERSITY_IS_LOCATED_IN, Vertex, WORK_AT, distinct,
};
use tidegraph_types::Value;

const COMPANIES_PER_COUNTRY: u64 = 14;

/// Generates the companies of each country and a university in each city.
pub fn all<E>(
    details: &Details,
    out: &mut Elements<'_, impl FnMut(Element<'_>) -> Result<(), E>>,
) -> Result<(), E> {
    for number in 0..COUNTRIES * COMPANIES_PER_COUNTRY {
        let company = Vertex(&COMPANY, number);
        out.vertex(company, &details.named("Company", number))?;
        out.edge(&COMPANY_IS_LOCATED_IN, company, Vertex(&COUNTRY, number / COMPANIES_PER_COUNTRY))?;
    }
    for number in 0..COUNTRIES * CITIES_PER_COUNTRY {
        let university = Vertex(&UNIVERSITY, number);
        // Organisations share their ids.
        let values = details.named("University", COUNTRIES * COMPANIES_PER_COUNTRY + number);
        out.vertex(university, &values)?;
        out.edge(&UNIVERSITY_IS_LOCATED_IN, university, Vertex(&CITY, number))?;
    }
    Ok(())
}

/// Generates where a person studied and works. Four persons out of five studied, in their country; all work at up to
/// three companies, mostly there. Generates nothing if the network has no properties.
pub fn of_person<E>(
    person: Vertex,
    city: u64,
    details: &mut Details,
    out: &mut Elements<'_, impl FnMut(Element<'_>) -> Result<(), E>>,
) -> Result<(), E> {
    let Some(random) = details.random() else { return Ok(()) };
    let country = city / CITIES_PER_COUNTRY;
    let year = |low: i32, drawn: u64| vec![Some(Value::Int(low + drawn as i32))];
    if random.below(5) > 0 {
        let university = country * CITIES_PER_COUNTRY + random.skewed(CITIES_PER_COUNTRY, 0);
        let since = year(1998, random.below(12));
        out.edge_with(&STUDY_AT, person, Vertex(&UNIVERSITY, university), &since)?;
    }
    let mut companies = vec![];
    distinct(random.below(4), &mut companies, || {
        let country = if random.below(4) > 0 { country } else { random.skewed(COUNTRIES, 2) };
        Some(country * COMPANIES_PER_COUNTRY + random.below(COMPANIES_PER_COUNTRY))
    });
    for company in companies {
        let since = year(2000, random.below(14));
        out.edge_with(&WORK_AT, person, Vertex(&COMPANY, company), &since)?;
    }
    Ok(())
}
