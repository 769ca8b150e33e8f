//! The texts of the 21 reads, the same for Tidegraph and Neo4j.
//!
//! They are those of <https://github.com/ldbc/ldbc_snb_interactive_v1_impls> (folder `cypher/queries`, commit 68df673),
//! with these changes, so that both databases have exactly one right answer: orders end with an id where rows could tie,
//! lists are collected in order, and a missing element is told by `IS NULL` instead of `CASE x WHEN null`. The
//! `toInteger` around ids is gone, because ids are numbers.

use super::parameters::Draw;

/// A read.
#[derive(Clone, Copy)]
pub struct Read {
    /// Its name: IS1 to IS7 and IC1 to IC14.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
    /// Its parameters.
    pub draw: &'static [Draw],
}

/// The reads, the short ones first.
pub static READS: [Read; 21] = [
    Read {
        name: "IS1",
        text: "MATCH (n:Person {id: $personId})-[:IS_LOCATED_IN]->(p:City) \
               RETURN n.firstName AS firstName, n.lastName AS lastName, n.birthday AS birthday, \
               n.locationIP AS locationIP, n.browserUsed AS browserUsed, p.id AS cityId, n.gender AS gender, \
               n.creationDate AS creationDate",
        draw: &[Draw::Anyone],
    },
    Read {
        name: "IS2",
        text: "MATCH (:Person {id: $personId})<-[:HAS_CREATOR]-(message) \
               WITH message, message.id AS messageId, message.creationDate AS messageCreationDate \
               ORDER BY messageCreationDate DESC, messageId ASC LIMIT 10 \
               MATCH (message)-[:REPLY_OF*0..]->(post:Post), (post)-[:HAS_CREATOR]->(person) \
               RETURN messageId, coalesce(message.imageFile, message.content) AS messageContent, \
               messageCreationDate, post.id AS postId, person.id AS personId, \
               person.firstName AS personFirstName, person.lastName AS personLastName \
               ORDER BY messageCreationDate DESC, messageId ASC",
        draw: &[Draw::Anyone],
    },
    Read {
        name: "IS3",
        text: "MATCH (n:Person {id: $personId})-[r:KNOWS]-(friend) \
               RETURN friend.id AS personId, friend.firstName AS firstName, friend.lastName AS lastName, \
               r.creationDate AS friendshipCreationDate \
               ORDER BY friendshipCreationDate DESC, personId ASC",
        draw: &[Draw::Anyone],
    },
    Read {
        name: "IS4",
        text: "MATCH (m:Message {id: $messageId}) \
               RETURN m.creationDate AS messageCreationDate, coalesce(m.content, m.imageFile) AS messageContent",
        draw: &[Draw::Message],
    },
    Read {
        name: "IS5",
        text: "MATCH (m:Message {id: $messageId})-[:HAS_CREATOR]->(p:Person) \
               RETURN p.id AS personId, p.firstName AS firstName, p.lastName AS lastName",
        draw: &[Draw::Message],
    },
    Read {
        name: "IS6",
        text: "MATCH (m:Message {id: $messageId})-[:REPLY_OF*0..]->(p:Post)<-[:CONTAINER_OF]-(f:Forum)\
               -[:HAS_MODERATOR]->(mod:Person) \
               RETURN f.id AS forumId, f.title AS forumTitle, mod.id AS moderatorId, \
               mod.firstName AS moderatorFirstName, mod.lastName AS moderatorLastName",
        draw: &[Draw::Message],
    },
    Read {
        name: "IS7",
        text: "MATCH (m:Message {id: $messageId})<-[:REPLY_OF]-(c:Comment)-[:HAS_CREATOR]->(p:Person) \
               OPTIONAL MATCH (m)-[:HAS_CREATOR]->(a:Person)-[r:KNOWS]-(p) \
               RETURN c.id AS commentId, c.content AS commentContent, c.creationDate AS commentCreationDate, \
               p.id AS replyAuthorId, p.firstName AS replyAuthorFirstName, p.lastName AS replyAuthorLastName, \
               r IS NOT NULL AS replyAuthorKnowsOriginalMessageAuthor \
               ORDER BY commentCreationDate DESC, replyAuthorId ASC, commentId ASC",
        draw: &[Draw::RepliedMessage],
    },
    Read {
        name: "IC1",
        text: "MATCH (p:Person {id: $personId}), (friend:Person {firstName: $firstName}) WHERE NOT p = friend \
               WITH p, friend \
               MATCH path = shortestPath((p)-[:KNOWS*1..3]-(friend)) \
               WITH min(length(path)) AS distance, friend \
               ORDER BY distance ASC, friend.lastName ASC, friend.id ASC LIMIT 20 \
               MATCH (friend)-[:IS_LOCATED_IN]->(friendCity:City) \
               OPTIONAL MATCH (friend)-[studyAt:STUDY_AT]->(uni:University)-[:IS_LOCATED_IN]->(uniCity:City) \
               WITH friend, collect(CASE WHEN uni IS NULL THEN null \
               ELSE [uni.name, studyAt.classYear, uniCity.name] END) AS unis, friendCity, distance \
               OPTIONAL MATCH (friend)-[workAt:WORK_AT]->(company:Company)-[:IS_LOCATED_IN]->(companyCountry:Country) \
               WITH friend, company, workAt, companyCountry, unis, friendCity, distance ORDER BY company.id \
               WITH friend, collect(CASE WHEN company IS NULL THEN null \
               ELSE [company.name, workAt.workFrom, companyCountry.name] END) AS companies, \
               unis, friendCity, distance \
               RETURN friend.id AS friendId, friend.lastName AS friendLastName, distance AS distanceFromPerson, \
               friend.birthday AS friendBirthday, friend.creationDate AS friendCreationDate, \
               friend.gender AS friendGender, friend.browserUsed AS friendBrowserUsed, \
               friend.locationIP AS friendLocationIp, friend.email AS friendEmails, \
               friend.speaks AS friendLanguages, friendCity.name AS friendCityName, \
               unis AS friendUniversities, companies AS friendCompanies \
               ORDER BY distanceFromPerson ASC, friendLastName ASC, friendId ASC LIMIT 20",
        draw: &[Draw::Person, Draw::FirstName],
    },
    Read {
        name: "IC2",
        text: "MATCH (:Person {id: $personId})-[:KNOWS]-(friend:Person)<-[:HAS_CREATOR]-(message:Message) \
               WHERE message.creationDate <= $maxDate \
               RETURN friend.id AS personId, friend.firstName AS personFirstName, \
               friend.lastName AS personLastName, message.id AS postOrCommentId, \
               coalesce(message.content, message.imageFile) AS postOrCommentContent, \
               message.creationDate AS postOrCommentCreationDate \
               ORDER BY postOrCommentCreationDate DESC, postOrCommentId ASC LIMIT 20",
        draw: &[Draw::Person, Draw::MaxDate],
    },
    Read {
        name: "IC3",
        text: "MATCH (countryX:Country {name: $countryXName}), (countryY:Country {name: $countryYName}), \
               (person:Person {id: $personId}) \
               WITH person, countryX, countryY LIMIT 1 \
               MATCH (city:City)-[:IS_PART_OF]->(country:Country) WHERE country IN [countryX, countryY] \
               WITH person, countryX, countryY, collect(city) AS cities \
               MATCH (person)-[:KNOWS*1..2]-(friend)-[:IS_LOCATED_IN]->(city) \
               WHERE NOT person = friend AND NOT city IN cities \
               WITH DISTINCT friend, countryX, countryY \
               MATCH (friend)<-[:HAS_CREATOR]-(message), (message)-[:IS_LOCATED_IN]->(country) \
               WHERE $endDate > message.creationDate >= $startDate AND country IN [countryX, countryY] \
               WITH friend, CASE WHEN country = countryX THEN 1 ELSE 0 END AS messageX, \
               CASE WHEN country = countryY THEN 1 ELSE 0 END AS messageY \
               WITH friend, sum(messageX) AS xCount, sum(messageY) AS yCount \
               WHERE xCount > 0 AND yCount > 0 \
               RETURN friend.id AS friendId, friend.firstName AS friendFirstName, \
               friend.lastName AS friendLastName, xCount, yCount, xCount + yCount AS xyCount \
               ORDER BY xyCount DESC, friendId ASC LIMIT 20",
        draw: &[Draw::Person, Draw::TwoCountries, Draw::Quarter],
    },
    Read {
        name: "IC4",
        text: "MATCH (person:Person {id: $personId})-[:KNOWS]-(friend:Person), \
               (friend)<-[:HAS_CREATOR]-(post:Post)-[:HAS_TAG]->(tag) \
               WITH DISTINCT tag, post \
               WITH tag, CASE WHEN $startDate <= post.creationDate < $endDate THEN 1 ELSE 0 END AS valid, \
               CASE WHEN post.creationDate < $startDate THEN 1 ELSE 0 END AS inValid \
               WITH tag, sum(valid) AS postCount, sum(inValid) AS inValidPostCount \
               WHERE postCount > 0 AND inValidPostCount = 0 \
               RETURN tag.name AS tagName, postCount ORDER BY postCount DESC, tagName ASC LIMIT 10",
        draw: &[Draw::Person, Draw::Month],
    },
    Read {
        name: "IC5",
        text: "MATCH (person:Person {id: $personId})-[:KNOWS*1..2]-(friend) WHERE NOT person = friend \
               WITH DISTINCT friend \
               MATCH (friend)<-[membership:HAS_MEMBER]-(forum) WHERE membership.joinDate > $minDate \
               WITH forum, collect(friend) AS friends \
               OPTIONAL MATCH (friend)<-[:HAS_CREATOR]-(post)<-[:CONTAINER_OF]-(forum) WHERE friend IN friends \
               WITH forum, count(post) AS postCount \
               RETURN forum.title AS forumName, postCount ORDER BY postCount DESC, forum.id ASC LIMIT 20",
        draw: &[Draw::Person, Draw::MinDate],
    },
    Read {
        name: "IC6",
        text: "MATCH (knownTag:Tag {name: $tagName}) WITH knownTag.id AS knownTagId \
               MATCH (person:Person {id: $personId})-[:KNOWS*1..2]-(friend) WHERE NOT person = friend \
               WITH knownTagId, collect(DISTINCT friend) AS friends \
               UNWIND friends AS f \
               MATCH (f)<-[:HAS_CREATOR]-(post:Post), (post)-[:HAS_TAG]->(t:Tag {id: knownTagId}), \
               (post)-[:HAS_TAG]->(tag:Tag) WHERE NOT t = tag \
               WITH tag.name AS tagName, count(post) AS postCount \
               RETURN tagName, postCount ORDER BY postCount DESC, tagName ASC LIMIT 10",
        draw: &[Draw::Person, Draw::Tag],
    },
    Read {
        name: "IC7",
        text: "MATCH (person:Person {id: $personId})<-[:HAS_CREATOR]-(message:Message)<-[like:LIKES]-(liker:Person) \
               WITH liker, message, like.creationDate AS likeTime, person \
               ORDER BY likeTime DESC, message.id ASC \
               WITH liker, head(collect({msg: message, likeTime: likeTime})) AS latestLike, person \
               RETURN liker.id AS personId, liker.firstName AS personFirstName, \
               liker.lastName AS personLastName, latestLike.likeTime AS likeCreationDate, \
               latestLike.msg.id AS commentOrPostId, \
               coalesce(latestLike.msg.content, latestLike.msg.imageFile) AS commentOrPostContent, \
               toInteger(floor(toFloat(latestLike.likeTime - latestLike.msg.creationDate) / 1000.0) / 60.0) \
               AS minutesLatency, \
               NOT ((liker)-[:KNOWS]-(person)) AS isNew \
               ORDER BY likeCreationDate DESC, personId ASC LIMIT 20",
        draw: &[Draw::Person],
    },
    Read {
        name: "IC8",
        text: "MATCH (start:Person {id: $personId})<-[:HAS_CREATOR]-(:Message)<-[:REPLY_OF]-(comment:Comment)\
               -[:HAS_CREATOR]->(person:Person) \
               RETURN person.id AS personId, person.firstName AS personFirstName, \
               person.lastName AS personLastName, comment.creationDate AS commentCreationDate, \
               comment.id AS commentId, comment.content AS commentContent \
               ORDER BY commentCreationDate DESC, commentId ASC LIMIT 20",
        draw: &[Draw::Person],
    },
    Read {
        name: "IC9",
        text: "MATCH (root:Person {id: $personId})-[:KNOWS*1..2]-(friend:Person) WHERE NOT friend = root \
               WITH collect(DISTINCT friend) AS friends \
               UNWIND friends AS friend \
               MATCH (friend)<-[:HAS_CREATOR]-(message:Message) WHERE message.creationDate < $maxDate \
               RETURN friend.id AS personId, friend.firstName AS personFirstName, \
               friend.lastName AS personLastName, message.id AS commentOrPostId, \
               coalesce(message.content, message.imageFile) AS commentOrPostContent, \
               message.creationDate AS commentOrPostCreationDate \
               ORDER BY commentOrPostCreationDate DESC, commentOrPostId ASC LIMIT 20",
        draw: &[Draw::Person, Draw::MaxDate],
    },
    Read {
        name: "IC10",
        text: "MATCH (person:Person {id: $personId})-[:KNOWS*2..2]-(friend), \
               (friend)-[:IS_LOCATED_IN]->(city:City) \
               WHERE NOT friend = person AND NOT (friend)-[:KNOWS]-(person) \
               WITH person, city, friend, datetime({epochMillis: friend.birthday}) AS birthday \
               WHERE (birthday.month = $month AND birthday.day >= 21) OR \
               (birthday.month = ($month % 12) + 1 AND birthday.day < 22) \
               WITH DISTINCT friend, city, person \
               OPTIONAL MATCH (friend)<-[:HAS_CREATOR]-(post:Post) \
               WITH friend, city, collect(post) AS posts, person \
               WITH friend, city, size(posts) AS postCount, \
               size([p IN posts WHERE (p)-[:HAS_TAG]->()<-[:HAS_INTEREST]-(person)]) AS commonPostCount \
               RETURN friend.id AS personId, friend.firstName AS personFirstName, \
               friend.lastName AS personLastName, \
               commonPostCount - (postCount - commonPostCount) AS commonInterestScore, \
               friend.gender AS personGender, city.name AS personCityName \
               ORDER BY commonInterestScore DESC, personId ASC LIMIT 10",
        draw: &[Draw::Person, Draw::BirthMonth],
    },
    Read {
        name: "IC11",
        text: "MATCH (person:Person {id: $personId})-[:KNOWS*1..2]-(friend:Person) WHERE NOT person = friend \
               WITH DISTINCT friend \
               MATCH (friend)-[workAt:WORK_AT]->(company:Company)-[:IS_LOCATED_IN]->(:Country {name: $countryName}) \
               WHERE workAt.workFrom < $workFromYear \
               RETURN friend.id AS personId, friend.firstName AS personFirstName, \
               friend.lastName AS personLastName, company.name AS organizationName, \
               workAt.workFrom AS organizationWorkFromYear \
               ORDER BY organizationWorkFromYear ASC, personId ASC, organizationName DESC LIMIT 10",
        draw: &[Draw::Person, Draw::Country, Draw::WorkFromYear],
    },
    Read {
        name: "IC12",
        text: "MATCH (tag:Tag)-[:HAS_TYPE|IS_SUBCLASS_OF*0..]->(baseTagClass:TagClass) \
               WHERE tag.name = $tagClassName OR baseTagClass.name = $tagClassName \
               WITH collect(tag.id) AS tags \
               MATCH (:Person {id: $personId})-[:KNOWS]-(friend:Person)<-[:HAS_CREATOR]-(comment:Comment)\
               -[:REPLY_OF]->(:Post)-[:HAS_TAG]->(tag:Tag) WHERE tag.id IN tags \
               WITH friend, collect(DISTINCT tag.name) AS tagNames, count(DISTINCT comment) AS replyCount \
               ORDER BY replyCount DESC, friend.id ASC LIMIT 20 \
               UNWIND tagNames AS tagName \
               WITH friend, replyCount, tagName ORDER BY tagName \
               RETURN friend.id AS personId, friend.firstName AS personFirstName, \
               friend.lastName AS personLastName, collect(tagName) AS tagNames, replyCount \
               ORDER BY replyCount DESC, personId ASC",
        draw: &[Draw::Person, Draw::TagClass],
    },
    Read {
        name: "IC13",
        text: "MATCH (person1:Person {id: $person1Id}), (person2:Person {id: $person2Id}), \
               path = shortestPath((person1)-[:KNOWS*]-(person2)) \
               RETURN CASE WHEN path IS NULL THEN -1 ELSE length(path) END AS shortestPathLength",
        draw: &[Draw::TwoPersons],
    },
    Read {
        name: "IC14",
        text: "MATCH path = allShortestPaths((person1:Person {id: $person1Id})-[:KNOWS*0..]-\
               (person2:Person {id: $person2Id})) \
               WITH collect(path) AS paths \
               UNWIND paths AS path \
               WITH path, relationships(path) AS rels_in_path \
               WITH [n IN nodes(path) | n.id] AS personIdsInPath, \
               [r IN rels_in_path | reduce(w = 0.0, v IN [\
               (a:Person)<-[:HAS_CREATOR]-(:Comment)-[:REPLY_OF]->(:Post)-[:HAS_CREATOR]->(b:Person) \
               WHERE (a.id = startNode(r).id AND b.id = endNode(r).id) \
               OR (a.id = endNode(r).id AND b.id = startNode(r).id) | 1.0] | w + v)] AS weight1, \
               [r IN rels_in_path | reduce(w = 0.0, v IN [\
               (a:Person)<-[:HAS_CREATOR]-(:Comment)-[:REPLY_OF]->(:Comment)-[:HAS_CREATOR]->(b:Person) \
               WHERE (a.id = startNode(r).id AND b.id = endNode(r).id) \
               OR (a.id = endNode(r).id AND b.id = startNode(r).id) | 0.5] | w + v)] AS weight2 \
               WITH personIdsInPath, reduce(w = 0.0, v IN weight1 | w + v) AS w1, \
               reduce(w = 0.0, v IN weight2 | w + v) AS w2 \
               RETURN personIdsInPath, (w1 + w2) AS pathWeight \
               ORDER BY pathWeight DESC, personIdsInPath ASC",
        draw: &[Draw::TwoPersons],
    },
];
