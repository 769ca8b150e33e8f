//! Plans of traversals as text, beside each query. Run with `INSTA_UPDATE=always` to rewrite them.

use std::fmt::Write;
use tidegraph_gremlin::compile;

fn plans(queries: &[&str]) -> String {
    let mut text = String::new();
    for query in queries {
        let plan = match compile(query) {
            Ok(plan) => plan.to_string(),
            Err(error) => panic!("{query}\n{error}"),
        };
        let _ = writeln!(text, "> {query}\n{plan}");
    }
    text
}

macro_rules! golden {
    ($name:ident, [$($query:literal),* $(,)?]) => {
        #[test]
        fn $name() {
            insta::with_settings!({omit_expression => true}, {
                insta::assert_snapshot!(plans(&[$($query),*]));
            });
        }
    };
}

// The queries of the identity benchmark: they read each adjacency once, and have no unnecessary operator.
golden!(
    identity_reads,
    [
        r#"g.V("ge").out("HAS_PARTNER").elementMap("type")"#,
        r#"g.V("ge").out("HAS_PARTNER").has("type","UID2").out()"#,
        r#"g.V("ge").both().choose(hasLabel("Partner"),out()).dedup()"#,
        r#"g.V("dev").in("HAS_DEVICE","PROVIDED_DEVICE").choose(hasLabel("GoldenEntity"), out().choose(hasLabel("Partner"),out()), both().choose(hasLabel("GoldenEntity"),out().choose(hasLabel("Partner"),out()))).not(hasLabel("Household"))"#,
        r#"g.V("dev").in("HAS_DEVICE","PROVIDED_DEVICE").both("HAS_PARTNER","HAS_DEVICE","PROVIDED_DEVICE").choose(hasLabel("Partner","GoldenEntity"),out("PROVIDED_DEVICE","HAS_DEVICE","HAS_PARTNER")).choose(hasLabel("Partner"),out("PROVIDED_DEVICE")).dedup()"#,
    ]
);

golden!(
    identity_writes,
    [
        r#"g.V("ge1").out("HAS_HOUSEHOLD").limit(1).addE("HAS_HOUSEHOLD").from(V("ge2"))"#,
        r#"g.V("dev").as("d").addV("Partner").property("type","UID2").as("p").addV("Cookie").property("size",1).as("c").addV("IpAddress").property("size",2).as("i").addE("PROVIDED_COOKIE").from("p").to("c").addE("PROVIDED_IP_ADDR").from("p").to("i").addE("PROVIDED_DEVICE").from("p").to("d").V("dev").in("HAS_DEVICE").limit(1).addE("HAS_PARTNER").to("p")"#,
        r#"g.V("partner").out().property("last_updated_ts",rnd)"#,
        r#"g.V("ge").property("first_name","A").property("last_name","B").property(single,"date_of_birth_day",3)"#,
        r#"g.V("ge").outE("HAS_PARTNER").where(otherV().values("type").is("UID2")).property("score",rnd)"#,
    ]
);

golden!(
    starts,
    [
        r#"g.V()"#,
        r#"g.V(1, "2", [3, "four"]).hasLabel("a")"#,
        r#"g.V(x).limit(n)"#,
        r#"g.V().hasLabel("a","b").has("k").has("age",gt(3)).has("age",between(1,5)).has("n",within("x","y")).has("n",startingWith("z")).has("p",x)"#,
        r#"g.V().has("a","name","x").has("age",neq(3)).has("name",containing("q"))"#,
        r#"g.V().hasLabel("a").hasId("1","2")"#,
        r#"g.V().has(T.id,neq("1")).has(T.label,startingWith("p"))"#,
        r#"g.E().hasLabel("knows").has("weight",P.gt(0.5))"#,
        r#"g.E("e1").outV()"#,
        r#"g.inject(1,[2,3],null)"#,
        r#"g.V().inject(1)"#,
    ]
);

golden!(
    walks,
    [
        r#"g.V("1").outE("a").inV()"#,
        r#"g.V("1").outE("a").has("w",gt(1)).inV().values("n")"#,
        r#"g.V("1").bothE().as("e").otherV().as("v").select("e","v").by("w").by(T.id)"#,
        r#"g.V("1").bothE().where(otherV().hasId("2"))"#,
        r#"g.V("1").inE().bothV().dedup()"#,
        r#"g.V("1").out(x)"#,
    ]
);

golden!(
    filters,
    [
        r#"g.V().not(has("age",gt(3)))"#,
        r#"g.V().where(out("knows").count().is(gt(2)))"#,
        r#"g.V().where(out("knows").hasLabel("x"))"#,
        r#"g.V().not(out("knows"))"#,
        r#"g.V().or(has("a",1),out("b"),and(has("c"),not(has("d"))))"#,
        r#"g.V().has("a").or().has("b").and().out("c")"#,
        r#"g.V().as("a").out().where(neq("a")).out().where("a",eq("a")).by("x").by("y")"#,
        r#"g.V().as("a").out().as("b").where(__.as("a").out("knows").as("b"))"#,
        r#"g.V().as("a").out().where(__.not(__.as("a").in("x")))"#,
        r#"g.V().values("age").is(gt(3).and(lt(9)).or(eq(11)))"#,
        r#"g.V().values("n").is(without("a",null))"#,
        r#"g.V().hasNot("x").properties("a").hasKey("a").hasValue(1)"#,
        r#"g.V().hasLabel("a").sample(2).values("n")"#,
        r#"g.V().outE("x").coin(0.5).sample(n).by("w").inV()"#,
        r#"g.V().values("a").fold().sample(local,2)"#,
    ]
);

golden!(
    maps,
    [
        r#"g.V().valueMap(true,"a")"#,
        r#"g.V().valueMap().with(WithOptions.tokens)"#,
        r#"g.V().valueMap().by(unfold())"#,
        r#"g.V().project("a","b","c").by("x").by(out().count()).by(values("y"))"#,
        r#"g.V().as("a").out().as("b").select("a","b")"#,
        r#"g.V().as("a").out().select("a")"#,
        r#"g.V().project("x").by(T.id).select("x")"#,
        r#"g.V().group().by(T.label).unfold().select(values)"#,
        r#"g.V().as("a").out().as("a").select(Pop.all,"a")"#,
    ]
);

golden!(
    groups,
    [
        r#"g.V().groupCount().by("x")"#,
        r#"g.V().group().by("x").by("y")"#,
        r#"g.V().group().by(T.label).by(out("a").count())"#,
        r#"g.V().group().by(T.label).by(values("age").sum())"#,
        r#"g.V().group().by(T.label).by(values("age").order().fold())"#,
        r#"g.V().group().by(out().count()).by(constant(1))"#,
        r#"g.V().order().by("x",desc).by(out().count(),asc).range(2,5)"#,
        r#"g.V().dedup().by(T.label).count()"#,
        r#"g.V().values("age").mean()"#,
        r#"g.V().groupCount().by(T.label).order(local).by(values,desc).limit(local,3)"#,
        r#"g.V().values("age").fold().order(local).by(desc).tail(local,2)"#,
        r#"g.V().fold().order(local).by("age")"#,
    ]
);

golden!(
    branches,
    [
        r#"g.V().union(out("a"),in("b"))"#,
        r#"g.V().union(out("a").count(),in("b").count())"#,
        r#"g.V("1").union(out("a").count(),in("b").count())"#,
        r#"g.V().choose(values("age")).option(1,out()).option(gt(5),in()).option(none,identity())"#,
        r#"g.V().choose(hasLabel("a"),out().count(),fold())"#,
        r#"g.V().coalesce(out("a"),constant("none"))"#,
        r#"g.V().optional(out("a"))"#,
        r#"g.V().local(outE().limit(2)).inV()"#,
        r#"g.V().local(out().count())"#,
        r#"g.V().map(out().values("x")).flatMap(constant(1))"#,
        r#"g.V().sideEffect(out()).sideEffect(property("a",1))"#,
    ]
);

golden!(
    loops,
    [
        r#"g.V("1").repeat(out("a")).times(2)"#,
        r#"g.V("1").repeat(out().simplePath()).until(hasId("2")).path().by("name").limit(1)"#,
        r#"g.V("1").emit().repeat(both().dedup()).times(n).dedup()"#,
        r#"g.V("1").until(loops().is(3)).repeat("a",outE().inV()).emit(has("x"))"#,
        r#"g.V("1").as("a").repeat(out().as("b")).times(2).select("a","b")"#,
    ]
);

golden!(
    paths,
    [
        r#"g.V("1").as("a").out().as("b","c").path()"#,
        r#"g.V("1").out().path().by("x").by(T.id)"#,
        r#"g.V("1").outE().inV().cyclicPath()"#,
        r#"g.V("1").coalesce(out().out(),identity()).path()"#,
    ]
);

golden!(
    writes,
    [
        r#"g.addV()"#,
        r#"g.addV("a::b").property(T.id,"1").property("k",x)"#,
        r#"g.addV().property("a",1).property(single,"k",x,"m",1,y,__.constant(2)).property("b",2)"#,
        r#"g.V().properties("k").has("m",gt(1)).property("m",2)"#,
        r#"g.V().properties("k").properties("m").element().drop()"#,
        r#"g.addE("knows").from(V("1")).to(V("2")).property(T.id,"e").property("w",1)"#,
        r#"g.V("1").property([a:1,b:set("x")]).property(list,"c",values("d"))"#,
        r#"g.V("1").properties("a").drop()"#,
        r#"g.V("1").drop().iterate()"#,
    ]
);

golden!(
    merges,
    [
        r#"g.mergeV([(T.id):"1",(T.label):"a::b",name:"x"]).option(onCreate,[age:1]).option(onMatch,[seen:single(x)])"#,
        r#"g.mergeV([(T.label):"a",name:"x",age:y])"#,
        r#"g.mergeE([(T.label):"knows",(OUT):"1",(IN):"2",since:2020]).option(onCreate,[w:1]).option(onMatch,[w:2])"#,
        r#"g.V("1").as("a").mergeE([(T.id):"e",(from):outV,(to):"2"]).option(outV,select("a"))"#,
    ]
);

golden!(
    values,
    [
        r#"g.V().values("name").toUpper().substring(1,-1)"#,
        r#"g.V().values("name").fold().trim(local)"#,
        r#"g.V().values("name").concat(" ",constant("x"))"#,
        r#"g.V().hasLabel("a").as("a").out().format("%{a} %{name} %{_}").by("age")"#,
        r#"g.V().values("age").fold().all(gt(3)).intersect([1,2])"#,
        r#"g.V().values("age").fold().conjoin(",")"#,
        r#"g.V().values("age").fold(0,sum)"#,
        r#"g.V().as("a").out().math("(_ - a) / 2").by("age")"#,
        r#"g.V().has("age",typeOf(GType.INT)).values("age").asNumber(GType.LONG)"#,
        r#"g.inject("2020-01-01").asDate().dateAdd(day,1).dateDiff(datetime("2020-01-01"))"#,
    ]
);

golden!(
    side_effects,
    [
        r#"g.V().aggregate("x").by("age").out().where(without("x"))"#,
        r#"g.V("1").repeat(out().where(without("x")).aggregate("x")).times(2).cap("x")"#,
        r#"g.V().groupCount("x").by("age").cap("x")"#,
        r#"g.V().store("x").limit(1).cap("x")"#,
        r#"g.V().group("x").by("a").by(out().count()).cap("x")"#,
        r#"g.V("1").out().tree().by("a")"#,
        r#"g.V("1").outE().subgraph("x").cap("x")"#,
    ]
);

golden!(
    patterns,
    [
        r#"g.V().match(__.as("a").out("x").as("b"),__.as("b").in("y").as("c"),__.where("a",neq("c"))).select("c")"#,
        r#"g.V().match(__.as("a").out().as("b"),__.or(__.as("b").has("k"),__.as("a").has("k")))"#,
        r#"g.V().branch(values("k")).option(1,out()).option(none,in())"#,
        r#"g.V("1").shortestPath().with("~tinkerpop.shortestPath.target",__.hasLabel("a"))"#,
    ]
);
