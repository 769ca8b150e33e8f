//! Forums: their members and tags, and the posts in them with comments and likes.

use super::people::People;
use super::{
    COMMENT, COMMENT_HAS_CREATOR, COMMENT_HAS_TAG, COMMENT_IS_LOCATED_IN, CONTAINER_OF, COUNTRIES, COUNTRY,
    Details, Element, Elements, FORUM, FORUM_HAS_TAG, FORUM_STREAM, HAS_MEMBER, HAS_MODERATOR, LIKES_COMMENT,
    LIKES_POST, PERSON, POST, POST_HAS_CREATOR, POST_HAS_TAG, POST_IS_LOCATED_IN, REPLY_OF_COMMENT,
    REPLY_OF_POST, RandomStream, TAG, Table, Vertex, distinct, tag,
};

/// Generates forums, and numbers posts and comments in the order of generation.
pub struct Forums<'a> {
    seed: u64,
    people: &'a People,
    details: Details,
    posts: u64,
    comments: u64,
    members: Vec<u64>,
    /// When each member joined, if the network has properties.
    since: Vec<u64>,
    tags: Vec<u64>,
    /// Posts and comments of a thread.
    thread: Vec<Message>,
    /// Numbers that are drawn for one message.
    drawn: Vec<u64>,
}

struct Message {
    vertex: Vertex,
    /// A tag of the message, which its replies are likely to have too.
    topic: Option<u64>,
    /// When it was written, if the network has properties.
    created: u64,
}

/// An edge from a vertex to another.
struct Link(&'static Table, Vertex, Vertex);

/// A message to generate.
struct Written {
    message: Vertex,
    /// Its place: in a forum, or under the message that it replies to.
    link: Link,
    /// When the message that it replies to was written.
    replied: Option<u64>,
    /// A tag that the message has with a probability of a half, if it has tags.
    topic: Option<u64>,
}

/// The tables of the edges of a kind of message.
struct Kind {
    creator: &'static Table,
    tag: &'static Table,
    country: &'static Table,
    likes: &'static Table,
    /// One more than the largest number of tags.
    tags: u64,
}

static POSTS: Kind = Kind {
    creator: &POST_HAS_CREATOR,
    tag: &POST_HAS_TAG,
    country: &POST_IS_LOCATED_IN,
    likes: &LIKES_POST,
    tags: 3,
};

static COMMENTS: Kind = Kind {
    creator: &COMMENT_HAS_CREATOR,
    tag: &COMMENT_HAS_TAG,
    country: &COMMENT_IS_LOCATED_IN,
    likes: &LIKES_COMMENT,
    tags: 4,
};

impl<'a> Forums<'a> {
    /// Starts with the first post and the first comment.
    pub fn new(seed: u64, people: &'a People, details: Details) -> Self {
        let [members, since, tags, drawn] = Default::default();
        Self { seed, people, details, posts: 0, comments: 0, members, since, tags, thread: vec![], drawn }
    }

    /// Generates a forum with everything in it.
    pub fn forum<E>(
        &mut self,
        number: u64,
        out: &mut Elements<'_, impl FnMut(Element<'_>) -> Result<(), E>>,
    ) -> Result<(), E> {
        let (people, mut random) = (self.people, RandomStream::new(self.seed, FORUM_STREAM + number));
        let random = &mut random;
        let forum = Vertex(&FORUM, number);
        let moderator = random.below(people.count());
        distinct(1 + random.below(6), &mut self.tags, || Some(tag(random)));
        let first_tag = self.tags.first().copied().unwrap_or_default();
        let (values, created) = self.details.forum(number, moderator, first_tag);
        out.vertex(forum, &values)?;
        out.edge(&HAS_MODERATOR, forum, Vertex(&PERSON, moderator))?;
        self.tags.iter().try_for_each(|&n| out.edge(&FORUM_HAS_TAG, forum, Vertex(&TAG, n)))?;
        distinct(random.amount(7), &mut self.members, || {
            let close = random.below(4) > 0;
            Some(if close { people.near(random, moderator) } else { people.popular(random) })
        });
        self.since.clear();
        for &member in &self.members {
            let (values, since) = self.details.membership(member, created);
            out.edge_with(&HAS_MEMBER, forum, Vertex(&PERSON, member), &values)?;
            self.since.push(since);
        }
        (0..random.amount(6)).try_for_each(|_| self.thread(forum, random, out))
    }

    /// Generates a post with its comments. One post out of four has comments, and most of them reply to the post.
    fn thread<E>(
        &mut self,
        forum: Vertex,
        random: &mut RandomStream,
        out: &mut Elements<'_, impl FnMut(Element<'_>) -> Result<(), E>>,
    ) -> Result<(), E> {
        let post = Vertex(&POST, self.posts);
        let topic = random.pick(&self.tags);
        let link = Link(&CONTAINER_OF, forum, post);
        let post =
            self.message(&Written { message: post, link, replied: None, topic }, &POSTS, random, out)?;
        self.posts += 1;
        self.thread.clear();
        self.thread.extend(post);
        if self.thread.is_empty() || random.below(4) > 0 {
            return Ok(());
        }
        for _ in 0..random.amount(5) {
            let comment = Vertex(&COMMENT, self.comments);
            let replied = if random.below(2) == 0 { 0 } else { random.below(self.thread.len() as u64) };
            let replied = &self.thread[replied as usize];
            let table =
                if std::ptr::eq(replied.vertex.0, &POST) { &REPLY_OF_POST } else { &REPLY_OF_COMMENT };
            let link = Link(table, comment, replied.vertex);
            let (topic, replied) = (replied.topic, Some(replied.created));
            let comment = Written { message: comment, link, replied, topic };
            let comment = self.message(&comment, &COMMENTS, random, out)?;
            self.comments += 1;
            self.thread.extend(comment);
        }
        Ok(())
    }

    /// Generates a message and the edges that posts and comments have in common. Returns nothing if the forum has no
    /// members.
    fn message<E>(
        &mut self,
        written: &Written,
        kind: &Kind,
        random: &mut RandomStream,
        out: &mut Elements<'_, impl FnMut(Element<'_>) -> Result<(), E>>,
    ) -> Result<Option<Message>, E> {
        let author = random.below(self.members.len() as u64) as usize;
        let (Some(&creator), Some(&since)) = (self.members.get(author), self.since.get(author)) else {
            return Ok(None);
        };
        let (message, number) = (written.message, self.posts + self.comments);
        let country = self.country(creator);
        let (values, created) = match written.replied {
            Some(replied) => self.details.comment(number, since, replied),
            None => self.details.post(number, since, country.1),
        };
        out.vertex(message, &values)?;
        let Link(table, from, to) = written.link;
        out.edge(table, from, to)?;
        out.edge(kind.creator, message, Vertex(&PERSON, creator))?;
        out.edge(kind.country, message, country)?;
        let mut topic = written.topic.filter(|_| random.below(2) == 0);
        distinct(random.below(kind.tags), &mut self.drawn, || {
            Some(topic.take().unwrap_or_else(|| tag(random)))
        });
        self.drawn.iter().try_for_each(|&n| out.edge(kind.tag, message, Vertex(&TAG, n)))?;
        let topic = self.drawn.first().copied();
        // One message out of six is liked.
        let likes = if random.below(6) == 0 { random.amount(4) } else { 0 };
        distinct(likes, &mut self.drawn, || Some(self.people.near(random, creator)));
        for &liker in &self.drawn {
            out.edge_with(kind.likes, Vertex(&PERSON, liker), message, &self.details.like(liker, created))?;
        }
        Ok(Some(Message { vertex: message, topic, created }))
    }

    /// Returns the country where a person writes a message. With properties, one message out of eight is written on a
    /// journey.
    fn country(&mut self, person: u64) -> Vertex {
        let home = self.people.country(person);
        let Some(random) = self.details.random() else { return home };
        if random.below(8) == 0 { Vertex(&COUNTRY, random.skewed(COUNTRIES, 2)) } else { home }
    }
}
