Feature: ids with types, and single properties

  Scenario: ids keep their type
    Given the empty graph
    And the graph initializer of
      """
      g.addV("t").property(T.id, 1).property("n", "int").addV("t").property(T.id, "1").property("n", "text").addV("t").property(T.id, UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab")).property("n", "uuid").addV("t").property(T.id, 3000000000L).property("n", "long").addV("t").property(T.id, "5b30bd14-8ae7-4b5d-9f7a-0123456789ab").property("n", "uuid text")
      """
    And the traversal of
      """
      g.V().id()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1].i |
      | 1 |
      | uuid[5b30bd14-8ae7-4b5d-9f7a-0123456789ab] |
      | d[3000000000].l |
      | 5b30bd14-8ae7-4b5d-9f7a-0123456789ab |

  Scenario: a number finds the vertex with this number
    Given the empty graph
    And the graph initializer of
      """
      g.addV("t").property(T.id, 1).property("n", "int").addV("t").property(T.id, "1").property("n", "text").addV("t").property(T.id, UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab")).property("n", "uuid").addV("t").property(T.id, 3000000000L).property("n", "long").addV("t").property(T.id, "5b30bd14-8ae7-4b5d-9f7a-0123456789ab").property("n", "uuid text")
      """
    And the traversal of
      """
      g.V(1).values("n")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | int |

  Scenario: a number of another width finds the same vertex
    Given the empty graph
    And the graph initializer of
      """
      g.addV("t").property(T.id, 1).property("n", "int").addV("t").property(T.id, "1").property("n", "text").addV("t").property(T.id, UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab")).property("n", "uuid").addV("t").property(T.id, 3000000000L).property("n", "long").addV("t").property(T.id, "5b30bd14-8ae7-4b5d-9f7a-0123456789ab").property("n", "uuid text")
      """
    And the traversal of
      """
      g.V(1L).values("n")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | int |

  Scenario: a string finds the vertex with this string
    Given the empty graph
    And the graph initializer of
      """
      g.addV("t").property(T.id, 1).property("n", "int").addV("t").property(T.id, "1").property("n", "text").addV("t").property(T.id, UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab")).property("n", "uuid").addV("t").property(T.id, 3000000000L).property("n", "long").addV("t").property(T.id, "5b30bd14-8ae7-4b5d-9f7a-0123456789ab").property("n", "uuid text")
      """
    And the traversal of
      """
      g.V("1").values("n")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | text |

  Scenario: a UUID finds the vertex with this UUID
    Given the empty graph
    And the graph initializer of
      """
      g.addV("t").property(T.id, 1).property("n", "int").addV("t").property(T.id, "1").property("n", "text").addV("t").property(T.id, UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab")).property("n", "uuid").addV("t").property(T.id, 3000000000L).property("n", "long").addV("t").property(T.id, "5b30bd14-8ae7-4b5d-9f7a-0123456789ab").property("n", "uuid text")
      """
    And the traversal of
      """
      g.V(UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab")).values("n")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | uuid |

  Scenario: the text of a UUID is a string
    Given the empty graph
    And the graph initializer of
      """
      g.addV("t").property(T.id, 1).property("n", "int").addV("t").property(T.id, "1").property("n", "text").addV("t").property(T.id, UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab")).property("n", "uuid").addV("t").property(T.id, 3000000000L).property("n", "long").addV("t").property(T.id, "5b30bd14-8ae7-4b5d-9f7a-0123456789ab").property("n", "uuid text")
      """
    And the traversal of
      """
      g.V("5b30bd14-8ae7-4b5d-9f7a-0123456789ab").values("n")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | uuid text |

  Scenario: ids of several types in one look-up
    Given the empty graph
    And the graph initializer of
      """
      g.addV("t").property(T.id, 1).property("n", "int").addV("t").property(T.id, "1").property("n", "text").addV("t").property(T.id, UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab")).property("n", "uuid").addV("t").property(T.id, 3000000000L).property("n", "long").addV("t").property(T.id, "5b30bd14-8ae7-4b5d-9f7a-0123456789ab").property("n", "uuid text")
      """
    And the traversal of
      """
      g.V(1, "1", 3000000000L, UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab"), 7).values("n")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | int |
      | text |
      | long |
      | uuid |

  Scenario: hasId at the start
    Given the empty graph
    And the graph initializer of
      """
      g.addV("t").property(T.id, 1).property("n", "int").addV("t").property(T.id, "1").property("n", "text").addV("t").property(T.id, UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab")).property("n", "uuid").addV("t").property(T.id, 3000000000L).property("n", "long").addV("t").property(T.id, "5b30bd14-8ae7-4b5d-9f7a-0123456789ab").property("n", "uuid text")
      """
    And the traversal of
      """
      g.V().hasId(1).values("n")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | int |

  Scenario: hasId of several
    Given the empty graph
    And the graph initializer of
      """
      g.addV("t").property(T.id, 1).property("n", "int").addV("t").property(T.id, "1").property("n", "text").addV("t").property(T.id, UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab")).property("n", "uuid").addV("t").property(T.id, 3000000000L).property("n", "long").addV("t").property(T.id, "5b30bd14-8ae7-4b5d-9f7a-0123456789ab").property("n", "uuid text")
      """
    And the traversal of
      """
      g.V().hasId(1, "1").values("n")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | int |
      | text |

  Scenario: hasId behind other steps
    Given the empty graph
    And the graph initializer of
      """
      g.addV("t").property(T.id, 1).property("n", "int").addV("t").property(T.id, "1").property("n", "text").addV("t").property(T.id, UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab")).property("n", "uuid").addV("t").property(T.id, 3000000000L).property("n", "long").addV("t").property(T.id, "5b30bd14-8ae7-4b5d-9f7a-0123456789ab").property("n", "uuid text")
      """
    And the traversal of
      """
      g.V().identity().hasId(1L).values("n")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | int |

  Scenario: hasId of a string behind other steps
    Given the empty graph
    And the graph initializer of
      """
      g.addV("t").property(T.id, 1).property("n", "int").addV("t").property(T.id, "1").property("n", "text").addV("t").property(T.id, UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab")).property("n", "uuid").addV("t").property(T.id, 3000000000L).property("n", "long").addV("t").property(T.id, "5b30bd14-8ae7-4b5d-9f7a-0123456789ab").property("n", "uuid text")
      """
    And the traversal of
      """
      g.V().identity().hasId("1").values("n")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | text |

  Scenario: hasId within behind other steps
    Given the empty graph
    And the graph initializer of
      """
      g.addV("t").property(T.id, 1).property("n", "int").addV("t").property(T.id, "1").property("n", "text").addV("t").property(T.id, UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab")).property("n", "uuid").addV("t").property(T.id, 3000000000L).property("n", "long").addV("t").property(T.id, "5b30bd14-8ae7-4b5d-9f7a-0123456789ab").property("n", "uuid text")
      """
    And the traversal of
      """
      g.V().identity().hasId(within(1, UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab"))).values("n")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | int |
      | uuid |

  Scenario: hasId without behind other steps
    Given the empty graph
    And the graph initializer of
      """
      g.addV("t").property(T.id, 1).property("n", "int").addV("t").property(T.id, "1").property("n", "text").addV("t").property(T.id, UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab")).property("n", "uuid").addV("t").property(T.id, 3000000000L).property("n", "long").addV("t").property(T.id, "5b30bd14-8ae7-4b5d-9f7a-0123456789ab").property("n", "uuid text")
      """
    And the traversal of
      """
      g.V().identity().hasId(without("1", 3000000000L)).values("n")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | int |
      | uuid |
      | uuid text |

  Scenario: ids compare as numbers
    Given the empty graph
    And the graph initializer of
      """
      g.addV("t").property(T.id, 1).property("n", "int").addV("t").property(T.id, "1").property("n", "text").addV("t").property(T.id, UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab")).property("n", "uuid").addV("t").property(T.id, 3000000000L).property("n", "long").addV("t").property(T.id, "5b30bd14-8ae7-4b5d-9f7a-0123456789ab").property("n", "uuid text")
      """
    And the traversal of
      """
      g.V().hasId(gt(1)).values("n")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | long |

  Scenario: has with a token
    Given the empty graph
    And the graph initializer of
      """
      g.addV("t").property(T.id, 1).property("n", "int").addV("t").property(T.id, "1").property("n", "text").addV("t").property(T.id, UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab")).property("n", "uuid").addV("t").property(T.id, 3000000000L).property("n", "long").addV("t").property(T.id, "5b30bd14-8ae7-4b5d-9f7a-0123456789ab").property("n", "uuid text")
      """
    And the traversal of
      """
      g.V().identity().has(T.id, 1).values("n")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | int |

  Scenario: an id is a value like any other
    Given the empty graph
    And the graph initializer of
      """
      g.addV("t").property(T.id, 1).property("n", "int").addV("t").property(T.id, "1").property("n", "text").addV("t").property(T.id, UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab")).property("n", "uuid").addV("t").property(T.id, 3000000000L).property("n", "long").addV("t").property(T.id, "5b30bd14-8ae7-4b5d-9f7a-0123456789ab").property("n", "uuid text")
      """
    And the traversal of
      """
      g.V().where(__.id().is(1L)).values("n")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | int |

  Scenario: ids that are numbers are ordered as numbers
    Given the empty graph
    And the graph initializer of
      """
      g.addV().property(T.id, 10).addV().property(T.id, 9).addV().property(T.id, 100)
      """
    And the traversal of
      """
      g.V().order().by(T.id).id()
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | d[9].i |
      | d[10].i |
      | d[100].i |

  Scenario: valueMap has the id
    Given the empty graph
    And the graph initializer of
      """
      g.addV("t").property(T.id, 1)
      """
    And the traversal of
      """
      g.V().valueMap(true)
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | m[{"t[id]": "d[1].i", "t[label]": "t"}] |

  Scenario: elementMap has the ids of an edge and of its ends
    Given the empty graph
    And the graph initializer of
      """
      g.addV("a").property(T.id, 1).as("a").addV("b").property(T.id, "1").as("b").addE("e").from("a").to("b").property(T.id, 7)
      """
    And the traversal of
      """
      g.E().elementMap()
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | m[{"t[id]": "d[7].i", "t[label]": "e", "D[IN]": {"t[id]": "1", "t[label]": "b"}, "D[OUT]": {"t[id]": "d[1].i", "t[label]": "a"}}] |

  Scenario: an edge is found by a number
    Given the empty graph
    And the graph initializer of
      """
      g.addV("a").property(T.id, 1).as("a").addV("b").property(T.id, "1").as("b").addE("e").from("a").to("b").property(T.id, 7)
      """
    And the traversal of
      """
      g.E(7).inV().id()
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | 1 |

  Scenario: an edge is not found by another type
    Given the empty graph
    And the graph initializer of
      """
      g.addV("a").property(T.id, 1).as("a").addV("b").property(T.id, "1").as("b").addE("e").from("a").to("b").property(T.id, 7)
      """
    And the traversal of
      """
      g.E("7")
      """
    When iterated to list
    Then the result should be empty

  Scenario: an edge without a chosen id has a string
    Given the empty graph
    And the graph initializer of
      """
      g.addV().as("a").addE("e").to("a")
      """
    And the traversal of
      """
      g.E().id().is(P.typeOf(GType.STRING)).count()
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | d[1].l |

  Scenario: elements as text
    Given the empty graph
    And the graph initializer of
      """
      g.addV("a").property(T.id, 1).as("a").addV("b").property(T.id, "1").as("b").addE("e").from("a").to("b").property(T.id, 7)
      """
    And the traversal of
      """
      g.union(V(), E()).asString()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | str[v[1]] |
      | str[v[1]] |
      | str[e[7][1-e->1]] |

  Scenario: ends of a new edge by id
    Given the empty graph
    And the graph initializer of
      """
      g.addV().property(T.id, 1).addV().property(T.id, 2)
      """
    And the traversal of
      """
      g.addE("e").from(__.V(1)).to(__.V(2)).project("o", "i").by(outV().id()).by(inV().id())
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | m[{"o": "d[1].i", "i": "d[2].i"}] |

  Scenario: mergeV finds by a number
    Given the empty graph
    And the graph initializer of
      """
      g.addV("t").property(T.id, 1).property("n", "int").addV("t").property(T.id, "1").property("n", "text").addV("t").property(T.id, UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab")).property("n", "uuid").addV("t").property(T.id, 3000000000L).property("n", "long").addV("t").property(T.id, "5b30bd14-8ae7-4b5d-9f7a-0123456789ab").property("n", "uuid text")
      """
    And the traversal of
      """
      g.mergeV([(T.id): 1]).values("n")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | int |

  Scenario: mergeV creates with a number
    Given the empty graph
    And the graph initializer of
      """
      g.addV("t").property(T.id, 1).property("n", "int").addV("t").property(T.id, "1").property("n", "text").addV("t").property(T.id, UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab")).property("n", "uuid").addV("t").property(T.id, 3000000000L).property("n", "long").addV("t").property(T.id, "5b30bd14-8ae7-4b5d-9f7a-0123456789ab").property("n", "uuid text")
      """
    And the traversal of
      """
      g.mergeV([(T.id): 2, (T.label): "t"]).id()
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | d[2].i |

  Scenario: mergeV with a map that is computed
    Given the empty graph
    And the graph initializer of
      """
      g.addV("t").property(T.id, 1).property("n", "int").addV("t").property(T.id, "1").property("n", "text").addV("t").property(T.id, UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab")).property("n", "uuid").addV("t").property(T.id, 3000000000L).property("n", "long").addV("t").property(T.id, "5b30bd14-8ae7-4b5d-9f7a-0123456789ab").property("n", "uuid text")
      """
    And the traversal of
      """
      g.inject([(T.id): 1]).mergeV().values("n")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | int |

  Scenario: mergeE finds and creates by numbers
    Given the empty graph
    And the graph initializer of
      """
      g.addV("a").property(T.id, 1).as("a").addV("b").property(T.id, "1").as("b").addE("e").from("a").to("b").property(T.id, 7)
      """
    And the traversal of
      """
      g.union(mergeE([(T.id): 7, (T.label): "e", (Direction.OUT): 1, (Direction.IN): "1"]), mergeE([(T.id): 8, (T.label): "e", (Direction.OUT): "1", (Direction.IN): 1])).project("e", "o").by(T.id).by(outV().id())
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | m[{"e": "d[7].i", "o": "d[1].i"}] |
      | m[{"e": "d[8].i", "o": "1"}] |

  Scenario: groups by id
    Given the empty graph
    And the graph initializer of
      """
      g.addV("t").property(T.id, 1).property("n", "int").addV("t").property(T.id, "1").property("n", "text").addV("t").property(T.id, UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab")).property("n", "uuid").addV("t").property(T.id, 3000000000L).property("n", "long").addV("t").property(T.id, "5b30bd14-8ae7-4b5d-9f7a-0123456789ab").property("n", "uuid text")
      """
    And the traversal of
      """
      g.V(1, "1").groupCount().by(T.id)
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | m[{"d[1].i": "d[1].l", "1": "d[1].l"}] |

  Scenario: a vertex with this id may exist already
    Given the empty graph
    And the graph initializer of
      """
      g.addV("t").property(T.id, 1).property("n", "int").addV("t").property(T.id, "1").property("n", "text").addV("t").property(T.id, UUID("5b30bd14-8ae7-4b5d-9f7a-0123456789ab")).property("n", "uuid").addV("t").property(T.id, 3000000000L).property("n", "long").addV("t").property(T.id, "5b30bd14-8ae7-4b5d-9f7a-0123456789ab").property("n", "uuid text")
      """
    And the traversal of
      """
      g.addV().property(T.id, 1L)
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: a boolean is no id of a new vertex
    Given the empty graph
    And the traversal of
      """
      g.addV().property(T.id, true)
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: a boolean is no id to look up
    Given the empty graph
    And the traversal of
      """
      g.V(true)
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: a boolean is no id to compare
    Given the empty graph
    And the traversal of
      """
      g.V().identity().hasId(true)
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: a double is no id of a new vertex
    Given the empty graph
    And the traversal of
      """
      g.addV().property(T.id, 1.5)
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: a double is no id to look up
    Given the empty graph
    And the traversal of
      """
      g.V(1.5)
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: a double is no id to compare
    Given the empty graph
    And the traversal of
      """
      g.V().identity().hasId(1.5)
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: a map is no id of a new vertex
    Given the empty graph
    And the traversal of
      """
      g.addV().property(T.id, [a: 1])
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: a map is no id to look up
    Given the empty graph
    And the traversal of
      """
      g.V([a: 1])
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: a map is no id to compare
    Given the empty graph
    And the traversal of
      """
      g.V().identity().hasId([a: 1])
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: a list is no id of a new vertex
    Given the empty graph
    And the traversal of
      """
      g.addV().property(T.id, [1])
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: an id of the engine is a UUID
    Given the empty graph
    And the graph initializer of
      """
      g.addV()
      """
    And the traversal of
      """
      g.V().id().is(P.typeOf(GType.UUID)).count()
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | d[1].l |

  Scenario: clusters are ids
    Given the modern graph
    And the traversal of
      """
      g.V().peerPressure().with(PeerPressure.propertyName, "c").has("name", "lop").values("c").is(P.typeOf(GType.INT)).count()
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | d[1].l |

  Scenario: components are strings
    Given the modern graph
    And the traversal of
      """
      g.V().connectedComponent().with(ConnectedComponent.propertyName, "c").has("name", "lop").values("c")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | 1 |

  Scenario: a property without a cardinality is single
    Given the empty graph
    And the graph initializer of
      """
      g.addV().property("k", 1).property("k", 2)
      """
    And the traversal of
      """
      g.V().properties("k").value()
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | d[2].i |

  Scenario: a property with a cardinality has that one
    Given the empty graph
    And the graph initializer of
      """
      g.addV().property(set, "k", 1).property(set, "k", 2)
      """
    And the traversal of
      """
      g.V().properties("k").value()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1].i |
      | d[2].i |

  Scenario: onMatch writes single properties
    Given the empty graph
    And the graph initializer of
      """
      g.addV().property(T.id, 1).property("k", 1)
      """
    And the traversal of
      """
      g.mergeV([(T.id): 1]).option(Merge.onMatch, [k: 2]).properties("k").value()
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | d[2].i |

  Scenario: an end of a new edge is named by its vertex and by its id
    Given the empty graph
    And the graph initializer of
      """
      g.addV("p").property(id, 1).addV("p").property(id, 2)
      """
    And the traversal of
      """
      g.withSideEffect("c", [(Direction.OUT): Vertex(1, "p"), "k": 1]).
        mergeE([(T.label): "e", (Direction.OUT): 1, (Direction.IN): 2]).option(Merge.onCreate, __.select("c"))
      """
    When iterated to list
    Then the result should have a count of 1
    And the graph should return 1 for count of "g.V(1).outE(\"e\").has(\"k\", 1)"
