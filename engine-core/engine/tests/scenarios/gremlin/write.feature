Feature: steps that write

  Scenario: addV and property
    Given the empty graph
    And the traversal of
      """
      g.addV("x").property(id,"7").property(single,"n",1).property(single,"n",2)
      """
    When iterated to list
    Then the result should have a count of 1
    And the graph should return 1 for count of "g.V(\"7\").has(\"n\",2)"
    And the graph should return 0 for count of "g.V().has(\"n\",1)"

  Scenario: a set is the default
    Given the empty graph
    And the traversal of
      """
      g.addV("x").property("n",1).property("n",2)
      """
    When iterated to list
    Then the result should have a count of 1
    And the graph should return 1 for count of "g.V().has(\"n\",1)"
    And the graph should return 1 for count of "g.V().has(\"n\",2)"

  Scenario: addE between labels
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property("name","a").as("a").addV("person").property("name","b").as("b").addE("knows").from("a").to("b").property("since",1)
      """
    And the traversal of
      """
      g.V().has("name","a").as("x").V().has("name","b").addE("likes").from("x")
      """
    When iterated to list
    Then the result should have a count of 1
    And the graph should return 1 for count of "g.V().has(\"name\",\"a\").out(\"likes\").has(\"name\",\"b\")"

  Scenario: an edge without an end
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property("name","a").as("a").addV("person").property("name","b").as("b").addE("knows").from("a").to("b").property("since",1)
      """
    And the traversal of
      """
      g.addE("likes").from(__.V().has("name","nobody")).to(__.V().has("name","a"))
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: drop takes the edges too
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property("name","a").as("a").addV("person").property("name","b").as("b").addE("knows").from("a").to("b").property("since",1)
      """
    And the traversal of
      """
      g.V().has("name","b").drop()
      """
    When iterated to list
    Then the result should be empty
    And the graph should return 1 for count of "g.V()"
    And the graph should return 0 for count of "g.E()"

  Scenario: drop of a property
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property("name","a").as("a").addV("person").property("name","b").as("b").addE("knows").from("a").to("b").property("since",1)
      """
    And the traversal of
      """
      g.E().properties("since").drop()
      """
    When iterated to list
    Then the result should be empty
    And the graph should return 1 for count of "g.E()"
    And the graph should return 0 for count of "g.E().has(\"since\")"

  Scenario: mergeV finds or makes
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property("name","a").as("a").addV("person").property("name","b").as("b").addE("knows").from("a").to("b").property("since",1)
      """
    And the traversal of
      """
      g.mergeV([(T.label):"person","name":"a"]).option(onMatch,["seen":true])
      """
    When iterated to list
    Then the result should have a count of 1
    And the graph should return 2 for count of "g.V()"
    And the graph should return 1 for count of "g.V().has(\"seen\",true)"

  Scenario: mergeV cannot override
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property("name","a").as("a").addV("person").property("name","b").as("b").addE("knows").from("a").to("b").property("since",1)
      """
    And the traversal of
      """
      g.mergeV([(T.label):"cat"]).option(onCreate,[(T.label):"dog"])
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: mergeV of a hidden key
    Given the empty graph
    And the traversal of
      """
      g.mergeV(["~id":"1"])
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: mergeE looks for what it was told only
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property("name","a").as("a").addV("person").property("name","b").as("b").addE("knows").from("a").to("b").property("since",1)
      """
    And using the parameter a defined as "v[a].id"
    And using the parameter b defined as "v[b].id"
    And the traversal of
      """
      g.mergeE([(T.label):"knows",(Direction.OUT):a]).option(onCreate,[(Direction.IN):b]).option(onMatch,["since":2])
      """
    When iterated to list
    Then the result should have a count of 1
    And the graph should return 1 for count of "g.E()"
    And the graph should return 1 for count of "g.E().has(\"since\",2)"

  Scenario: sideEffect writes
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property("name","a").as("a").addV("person").property("name","b").as("b").addE("knows").from("a").to("b").property("since",1)
      """
    And the traversal of
      """
      g.V().sideEffect(property(single,"seen",1)).count()
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | d[2].l |
    And the graph should return 2 for count of "g.V().has(\"seen\",1)"

  Scenario: options for providers have no effect
    Given the empty graph
    And the traversal of
      """
      g.addV("p").with("x", 1).property("name", "a").with("key", "value").values("name", "key")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | a |

  Scenario: parameters of both maps of a merge may be equal
    Given the empty graph
    And using the parameter xx1 defined as "marko"
    And using the parameter xx2 defined as "marko"
    And the traversal of
      """
      g.mergeV([(T.label): "p", "name": xx1]).option(Merge.onCreate, ["name": xx2, "age": 1]).values("age")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1].i |

  Scenario: parameters of a merge that contradict each other
    Given the empty graph
    And using the parameter xx1 defined as "marko"
    And using the parameter xx2 defined as "josh"
    And the traversal of
      """
      g.mergeV([(T.label): "p", "name": xx1]).option(Merge.onCreate, ["name": xx2, "age": 1]).values("age")
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: a merge that begins a traversal reads a side effect
    Given the empty graph
    And the traversal of
      """
      g.withSideEffect("c", [(T.label): "p", "name": "marko"]).mergeV(__.select("c")).values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | marko |

  Scenario: mergeV with a parameter as the label
    Given the empty graph
    And the graph initializer of
      """
      g.addV("a::b").property("k", 1).addV("c").property("k", 1)
      """
    And using the parameter l defined as "str[a]"
    And the traversal of
      """
      g.mergeV([(T.label): l, k: 1]).property("found", true).values("k")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1].i |
    And the graph should return 2 for count of "g.V()"
    And the graph should return 1 for count of "g.V().hasLabel(\"b\").has(\"found\")"
