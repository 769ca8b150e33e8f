//! The tables of the network.

use crate::convert::Type;
use crate::generate::{Keys, Table};

/// Keys of places, tags, classes of tags and organisations.
const NAMED: Keys = &[("id", Type::Long), ("name", Type::String), ("url", Type::String)];
const CREATED: Keys = &[("creationDate", Type::Long)];

macro_rules! tables {
    ($($name:ident $file:literal $labels:literal $edges:literal $keys:expr),* $(,)?) => { $(
        #[doc = concat!("Table of ", $labels, ".")]
        pub static $name: Table =
            Table { name: $file, label: $labels, edges: $edges, keys: $keys, lists: LISTS };
    )* };
}

/// Persons have several languages and addresses; nothing else has these keys.
const LISTS: &[&str] = &["speaks", "email"];

tables!(
    CONTINENT "continent" "Continent" false NAMED,
    COUNTRY "country" "Country" false NAMED,
    CITY "city" "City" false NAMED,
    TAG_CLASS "tag_class" "TagClass" false NAMED,
    TAG "tag" "Tag" false NAMED,
    PERSON "person" "Person" false &[
        ("id", Type::Long),
        ("firstName", Type::String),
        ("lastName", Type::String),
        ("gender", Type::String),
        ("birthday", Type::Long),
        ("creationDate", Type::Long),
        ("locationIP", Type::String),
        ("browserUsed", Type::String),
        ("speaks", Type::String),
        ("email", Type::String),
    ],
    FORUM "forum" "Forum" false &[("id", Type::Long), ("title", Type::String), ("creationDate", Type::Long)],
    POST "post" "Post;Message" false &[
        ("id", Type::Long),
        ("creationDate", Type::Long),
        ("locationIP", Type::String),
        ("browserUsed", Type::String),
        ("content", Type::String),
        ("length", Type::Int),
        ("imageFile", Type::String),
        ("language", Type::String),
    ],
    COMMENT "comment" "Comment;Message" false &[
        ("id", Type::Long),
        ("creationDate", Type::Long),
        ("locationIP", Type::String),
        ("browserUsed", Type::String),
        ("content", Type::String),
        ("length", Type::Int),
    ],
    COMPANY "company" "Company;Organisation" false NAMED,
    UNIVERSITY "university" "University;Organisation" false NAMED,
    COUNTRY_IS_PART_OF "country_is_part_of_continent" "IS_PART_OF" true &[],
    CITY_IS_PART_OF "city_is_part_of_country" "IS_PART_OF" true &[],
    IS_SUBCLASS_OF "tag_class_is_subclass_of_tag_class" "IS_SUBCLASS_OF" true &[],
    HAS_TYPE "tag_has_type_tag_class" "HAS_TYPE" true &[],
    PERSON_IS_LOCATED_IN "person_is_located_in_city" "IS_LOCATED_IN" true &[],
    HAS_INTEREST "person_has_interest_tag" "HAS_INTEREST" true &[],
    KNOWS "person_knows_person" "KNOWS" true CREATED,
    HAS_MODERATOR "forum_has_moderator_person" "HAS_MODERATOR" true &[],
    HAS_MEMBER "forum_has_member_person" "HAS_MEMBER" true &[("joinDate", Type::Long)],
    FORUM_HAS_TAG "forum_has_tag_tag" "HAS_TAG" true &[],
    CONTAINER_OF "forum_container_of_post" "CONTAINER_OF" true &[],
    POST_HAS_CREATOR "post_has_creator_person" "HAS_CREATOR" true &[],
    POST_HAS_TAG "post_has_tag_tag" "HAS_TAG" true &[],
    POST_IS_LOCATED_IN "post_is_located_in_country" "IS_LOCATED_IN" true &[],
    LIKES_POST "person_likes_post" "LIKES" true CREATED,
    COMMENT_HAS_CREATOR "comment_has_creator_person" "HAS_CREATOR" true &[],
    COMMENT_HAS_TAG "comment_has_tag_tag" "HAS_TAG" true &[],
    COMMENT_IS_LOCATED_IN "comment_is_located_in_country" "IS_LOCATED_IN" true &[],
    LIKES_COMMENT "person_likes_comment" "LIKES" true CREATED,
    REPLY_OF_POST "comment_reply_of_post" "REPLY_OF" true &[],
    REPLY_OF_COMMENT "comment_reply_of_comment" "REPLY_OF" true &[],
    COMPANY_IS_LOCATED_IN "company_is_located_in_country" "IS_LOCATED_IN" true &[],
    UNIVERSITY_IS_LOCATED_IN "university_is_located_in_city" "IS_LOCATED_IN" true &[],
    WORK_AT "person_work_at_company" "WORK_AT" true &[("workFrom", Type::Int)],
    STUDY_AT "person_study_at_university" "STUDY_AT" true &[("classYear", Type::Int)],
);

/// All tables. Those of organisations come last.
static TABLES: &[&Table] = &[
    &CONTINENT,
    &COUNTRY,
    &CITY,
    &TAG_CLASS,
    &TAG,
    &PERSON,
    &FORUM,
    &POST,
    &COMMENT,
    &COUNTRY_IS_PART_OF,
    &CITY_IS_PART_OF,
    &IS_SUBCLASS_OF,
    &HAS_TYPE,
    &PERSON_IS_LOCATED_IN,
    &HAS_INTEREST,
    &KNOWS,
    &HAS_MODERATOR,
    &HAS_MEMBER,
    &FORUM_HAS_TAG,
    &CONTAINER_OF,
    &POST_HAS_CREATOR,
    &POST_HAS_TAG,
    &POST_IS_LOCATED_IN,
    &LIKES_POST,
    &COMMENT_HAS_CREATOR,
    &COMMENT_HAS_TAG,
    &COMMENT_IS_LOCATED_IN,
    &LIKES_COMMENT,
    &REPLY_OF_POST,
    &REPLY_OF_COMMENT,
    &COMPANY,
    &UNIVERSITY,
    &COMPANY_IS_LOCATED_IN,
    &UNIVERSITY_IS_LOCATED_IN,
    &WORK_AT,
    &STUDY_AT,
];

/// Number of the tables of organisations.
const ORGANISATIONS: usize = 6;

/// Returns the tables of the network, with those of organisations if it has properties.
pub fn tables(properties: bool) -> &'static [&'static Table] {
    let count = if properties { TABLES.len() } else { TABLES.len() - ORGANISATIONS };
    TABLES.get(..count).unwrap_or(TABLES)
}
