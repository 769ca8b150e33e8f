Feature: steps that filter

  Scenario: hasId of a variable that holds a list
    Given the modern graph
    And using the parameter ids defined as "l[v[vadas].id,v[lop].id]"
    And the traversal of
      """
      g.V().has("name","marko").out().hasId(ids)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | v[vadas] |
      | v[lop] |

  Scenario: hasId of a predicate
    Given the modern graph
    And the traversal of
      """
      g.V().hasId(P.neq("1")).count()
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | d[5].l |

  Scenario: has with a text predicate
    Given the modern graph
    And the traversal of
      """
      g.V().has("name", TextP.endingWith("r")).values("name")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | peter |

  Scenario: has of label, key and predicate
    Given the modern graph
    And the traversal of
      """
      g.V().has("person","age",P.between(27,32)).values("age")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[29].i |
      | d[27].i |

  Scenario: where with labels
    Given the modern graph
    And the traversal of
      """
      g.V().as("a").out("created").in("created").as("b").where("a",P.neq("b")).by("age").select("a","b").by("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"a":"marko","b":"josh"}] |
      | m[{"a":"marko","b":"peter"}] |
      | m[{"a":"josh","b":"marko"}] |
      | m[{"a":"josh","b":"peter"}] |
      | m[{"a":"peter","b":"marko"}] |
      | m[{"a":"peter","b":"josh"}] |

  Scenario: where with a traversal that ends in a label
    Given the modern graph
    And the traversal of
      """
      g.V().as("a").out("knows").as("b").where(__.in("knows").as("a")).values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | vadas |
      | josh |

  Scenario: not, and, or
    Given the modern graph
    And the traversal of
      """
      g.V().and(hasLabel("person"), not(out("created"))).values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | vadas |

  Scenario: infix or
    Given the modern graph
    And the traversal of
      """
      g.V().where(__.out("knows").or().has("name","peter")).values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | marko |
      | peter |

  Scenario: nulls are equal to nulls
    Given the modern graph
    And the traversal of
      """
      g.inject(null, 1).is(P.lte(null))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | null |

  Scenario: properties of edges are distinct by key and value
    Given the modern graph
    And the traversal of
      """
      g.E().properties("weight").dedup().value()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[0.5].d |
      | d[1.0].d |
      | d[0.4].d |
      | d[0.2].d |

  Scenario: a range that cannot be
    Given the modern graph
    And the traversal of
      """
      g.V().range(3, 1)
      """
    When iterated to list
    Then the traversal will raise an error

  @gremlin-3.7
  Scenario: what cannot be ordered is neither above nor below, also under not
    Given the modern graph
    And the traversal of
      """
      g.inject(1, "a", null).not(is(gt(0)))
      """
    When iterated to list
    Then the result should be empty

  @gremlin-3.7
  Scenario: a comparison with NaN has no answer under not
    Given the modern graph
    And the traversal of
      """
      g.inject(1, 2).not(is(gt(1).and(lt(NaN))))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1].i |

  @gremlin-3.7
  Scenario: a negated predicate on another type drops the traverser
    Given the modern graph
    And the traversal of
      """
      g.inject("a", 0).is(not(gt(1)))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[0].i |

  @gremlin-3.7
  Scenario: what has no such property passes not, what has one of another type does not
    Given the modern graph
    And the traversal of
      """
      g.V().not(has("age", gt("x"))).values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | lop |
      | ripple |

  @gremlin-3.7
  Scenario: an edge with a property of another type does not pass not
    Given the modern graph
    And the traversal of
      """
      g.E().not(has("weight", gt("x")))
      """
    When iterated to list
    Then the result should be empty

  @gremlin-3.7
  Scenario: not of a walk whose last test has no answer
    Given the modern graph
    And the traversal of
      """
      g.V().not(out().values("age").is(gt("x"))).values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | vadas |
      | lop |
      | josh |
      | ripple |
      | peter |

  Scenario: a null is not equal to a value
    Given the modern graph
    And the traversal of
      """
      g.inject(null, 1, 2).is(neq(1))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | null |
      | d[2].i |

  Scenario: a null is not within values
    Given the modern graph
    And the traversal of
      """
      g.inject(null, 1, 2).is(without(1))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | null |
      | d[2].i |

  Scenario: not equal holds for what does not compare
    Given the modern graph
    And the traversal of
      """
      g.inject(null, 1).not(is(eq(1)))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | null |

  Scenario: sample of vertices, each once
    Given the modern graph
    And the traversal of
      """
      g.V().sample(4).dedup()
      """
    When iterated to list
    Then the result should have a count of 4

  Scenario: sample of more than there are
    Given the modern graph
    And the traversal of
      """
      g.V().hasLabel("person").sample(10).values("age")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[29].i |
      | d[27].i |
      | d[32].i |
      | d[35].i |

  Scenario: sample of what passes
    Given the modern graph
    And the traversal of
      """
      g.V().has("age",gt(30)).sample(1).where(__.values("age").is(lte(30)))
      """
    When iterated to list
    Then the result should have a count of 0

  Scenario: sample of nothing
    Given the modern graph
    And the traversal of
      """
      g.V().sample(0)
      """
    When iterated to list
    Then the result should have a count of 0

  Scenario: sample of a number that is bound
    Given the modern graph
    And using the parameter xx1 defined as "d[2].i"
    And the traversal of
      """
      g.V().sample(xx1)
      """
    When iterated to list
    Then the result should have a count of 2

  Scenario: sample by a weight that not all have
    Given the modern graph
    And the traversal of
      """
      g.V().sample(10).by("age")
      """
    When iterated to list
    Then the result should have a count of 4

  Scenario: sample by a weight of zero
    Given the modern graph
    And the traversal of
      """
      g.inject(0,0,0,5,0).sample(1).by(identity())
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[5].i |

  Scenario: sample by a weight that is no number
    Given the modern graph
    And the traversal of
      """
      g.V().sample(1).by("name")
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: sample by a negative weight
    Given the modern graph
    And the traversal of
      """
      g.V().sample(1).by(constant(-1))
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: sample of a negative number
    Given the modern graph
    And the traversal of
      """
      g.V().sample(-1)
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: sample for each traverser
    Given the modern graph
    And the traversal of
      """
      g.V().local(outE().sample(1)).count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[3].l |

  Scenario: sample for each traverser, of all vertices
    Given the modern graph
    And the traversal of
      """
      g.V().hasLabel("software").local(__.V().sample(2)).count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[4].l |

  Scenario: sample inside of union
    Given the modern graph
    And the traversal of
      """
      g.V().union(out().sample(2),__.in().sample(1)).count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[3].l |

  Scenario: sample inside of repeat
    Given the modern graph
    And the traversal of
      """
      g.V().repeat(both().sample(2)).times(2).count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[2].l |

  Scenario: sample of a collection
    Given the modern graph
    And the traversal of
      """
      g.V().values("age").fold().sample(local,3).count(local)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[3].l |

  Scenario: sample of a collection that is small
    Given the modern graph
    And the traversal of
      """
      g.inject([1,2]).sample(local,5)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | l[d[1].i,d[2].i] |

  Scenario: sample of a map
    Given the modern graph
    And the traversal of
      """
      g.V().groupCount().by(label).sample(local,1).count(local)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1].l |

  Scenario: sample sees what the request wrote
    Given the empty graph
    And the graph initializer of
      """
      g.addV("a").addV("b")
      """
    And the traversal of
      """
      g.V().hasLabel("b").property("x",1).addV("a").V().hasLabel("a").sample(5).count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[2].l |

  Scenario: coin that always falls right
    Given the modern graph
    And the traversal of
      """
      g.V().coin(1.0)
      """
    When iterated to list
    Then the result should have a count of 6

  Scenario: coin that never does
    Given the modern graph
    And the traversal of
      """
      g.V().where(__.coin(0)).union(identity(),__.out().coin(0.0))
      """
    When iterated to list
    Then the result should have a count of 0

  Scenario: coin that is no number
    Given the modern graph
    And the traversal of
      """
      g.V().coin("a")
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: a subgraph hides edges to hidden vertices
    Given the modern graph
    And the traversal of
      """
      g.withStrategies(new SubgraphStrategy(vertices: __.hasLabel("person"))).V("1").outE().count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[2].l |

  Scenario: a subgraph is seen in nested traversals too
    Given the modern graph
    And the traversal of
      """
      g.withStrategies(new SubgraphStrategy(edges: __.has("weight", gt(0.4)))).V().where(out("created")).values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | josh |

  Scenario: a strategy that is taken off has no effect
    Given the modern graph
    And the traversal of
      """
      g.withStrategies(ReadOnlyStrategy, new SubgraphStrategy(vertices: __.hasLabel("none"))).withoutStrategies(SubgraphStrategy).V().count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[6].l |

  Scenario: a traversal that is read only does not write
    Given the modern graph
    And the traversal of
      """
      g.withStrategies(ReadOnlyStrategy).V().sideEffect(__.property("a", 1))
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: without a strategy for infix notation, or() has no operands
    Given the modern graph
    And the traversal of
      """
      g.withoutStrategies(ConnectiveStrategy).V().has("name", "marko").or().has("name", "josh")
      """
    When iterated to list
    Then the result should be empty

  Scenario: without a strategy for infix notation, and() tests nothing
    Given the modern graph
    And the traversal of
      """
      g.withoutStrategies(ConnectiveStrategy).V().has("name", "marko").and().values("age")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[29].i |

  Scenario: strategies that need a computer may be forbidden
    Given the modern graph
    And the traversal of
      """
      g.withStrategies(VertexProgramRestrictionStrategy, VertexProgramStrategy).V()
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: options of a strategy are those of with()
    Given the modern graph
    And the traversal of
      """
      g.withStrategies(OptionsStrategy(evaluationTimeout: 10000, mine: "x")).V().count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[6].l |

  Scenario: a vertex as a value
    Given the modern graph
    And the traversal of
      """
      g.V().out().is(within(Vertex("3", "software"), Vertex("nobody", "person"))).count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[3].l |

  Scenario: a vertex that is not there equals nothing
    Given the modern graph
    And the traversal of
      """
      g.V().is(eq(Vertex("nobody", "person")))
      """
    When iterated to list
    Then the result should be empty

  Scenario: a vertex as a value in the second traversal of a request
    Given the modern graph
    And the traversal of
      """
      g.V().count(); g.inject(Vertex("1", "person")).out("knows").is(Vertex("2", "person")).values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | vadas |

  Scenario: an edge as a value
    Given the modern graph
    And the traversal of
      """
      g.V("1").outE().is(within(Edge("9", "created"), Vertex("7", "person"))).inV().values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | lop |

  Scenario: what is made outside of a subgraph is made, and does not go on
    Given the empty graph
    And the traversal of
      """
      g.withStrategies(new SubgraphStrategy(vertices: __.has("x", 1))).
        inject(1, 2).as("n").addV("a").property("x", select("n")).values("x")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1].i |
    And the graph should return 2 for count of "g.V()"

  Scenario: a merge looks in the whole graph, and an edge out of a subgraph does not go on
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property("name", "ada").addV("software").property("name", "lop")
      """
    And the traversal of
      """
      g.withStrategies(new SubgraphStrategy(vertices: __.hasLabel("person"))).
        mergeV([(T.label): "software", name: "lop"]).as("lop").
        V().addE("made").to("lop").count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[0].l |
    And the graph should return 1 for count of "g.E().hasLabel(\"made\")"
    And the graph should return 2 for count of "g.V()"
