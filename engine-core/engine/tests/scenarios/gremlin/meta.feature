Feature: meta-properties

  Scenario: written with the value and read by every step that reads properties
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().properties("place").valueMap()
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | m[{"from":"d[1999].i"}] |
      | m[{"from":"d[2003].i","to":"d[2008].i"}] |
      | m[{"from":"d[2008].i"}] |

  Scenario: values of some keys
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().properties("place","name").values("to","from","acl","no")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | d[1999].i |
      | d[2008].i |
      | d[2003].i |
      | d[2008].i |
      | public |

  Scenario: properties of properties
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().properties("name").properties().order().by(key).project("k","v","of").by(key).by(value).by(element().value())
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | m[{"k":"acl","v":"public","of":"ann"}] |
      | m[{"k":"since","v":"d[2010].i","of":"ann"}] |

  Scenario: elementMap and propertyMap
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().properties("name").as("p").elementMap("since").select(values).unfold().fold().count(local)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[4].l |

  Scenario: has of a property
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().properties().has("from",gt(2000)).value()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | bonn |
      | ulm |

  Scenario: has, hasNot, hasKey and hasValue
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().properties().hasNot("from").hasKey("name").hasValue("ann").has("acl","public").has("since").key()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | name |

  Scenario: by of a property
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().properties("place").order().by("from",desc).value()
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | ulm |
      | bonn |
      | ulm |

  Scenario: grouped by a meta-property
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().properties("place").group().by("from").by(value)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"d[1999].i":["ulm"],"d[2003].i":["bonn"],"d[2008].i":["ulm"]}] |

  Scenario: equal values of a list are several properties
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().properties("place").dedup().count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[3].l |

  Scenario: and each keeps its own when it is written to
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().properties("place").has("from",2008).property("kind","home")
      """
    When iterated to list
    Then the result should have a count of 1
    And the graph should return 1 for count of "g.V().properties(\"place\").has(\"kind\",\"home\")"
    And the graph should return 1 for count of "g.V().properties(\"place\").has(\"kind\",\"home\").has(\"from\",2008).hasValue(\"ulm\")"
    And the graph should return 1 for count of "g.V().properties(\"place\").has(\"from\",1999).hasNot(\"kind\")"

  Scenario: one of them is dropped
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().properties("place").has("from",2008).drop()
      """
    When iterated to list
    Then the result should be empty
    And the graph should return 2 for count of "g.V().properties(\"place\")"
    And the graph should return 1 for count of "g.V().properties(\"place\").hasValue(\"ulm\").has(\"from\",1999)"
    And the graph should return 1 for count of "g.V().properties(\"place\").hasValue(\"bonn\").has(\"to\",2008)"
    And the graph should return 0 for count of "g.V().properties(\"place\").has(\"from\",2008)"

  Scenario: both of them are dropped
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().properties("place").hasValue("ulm").drop()
      """
    When iterated to list
    Then the result should be empty
    And the graph should return 1 for count of "g.V().properties(\"place\")"
    And the graph should return 1 for count of "g.V().properties(\"place\").has(\"from\",2003)"

  Scenario: a meta-property is dropped
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().properties().properties("from").drop()
      """
    When iterated to list
    Then the result should be empty
    And the graph should return 0 for count of "g.V().properties().has(\"from\")"
    And the graph should return 3 for count of "g.V().properties(\"place\")"
    And the graph should return 1 for count of "g.V().properties(\"place\").has(\"to\",2008)"

  Scenario: a later value replaces an earlier one, a null writes none
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().properties("name").property("acl","private").property("since",null).property("x",null)
      """
    When iterated to list
    Then the result should have a count of 1
    And the graph should return 1 for count of "g.V().properties(\"name\").has(\"acl\",\"private\").hasNot(\"since\").hasNot(\"x\")"

  Scenario: single drops what the old value had, even when the value is equal
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().property(single,"name","ann")
      """
    When iterated to list
    Then the result should have a count of 1
    And the graph should return 1 for count of "g.V().properties(\"name\").hasNot(\"acl\").hasNot(\"since\")"

  Scenario: a set keeps what an equal value has
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().property(set,"name","ann","b",1).property(set,"name","bea","b",2)
      """
    When iterated to list
    Then the result should have a count of 1
    And the graph should return 1 for count of "g.V().properties(\"name\").has(\"acl\",\"public\").has(\"b\",1)"
    And the graph should return 1 for count of "g.V().properties(\"name\").hasValue(\"bea\").has(\"b\",2).hasNot(\"acl\")"

  Scenario: what the request wrote is seen by it
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().property(list,"place","ulm","from",2020).properties("place").has("from",gt(2005)).values("from")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[2008].i |
      | d[2020].i |

  Scenario: a new vertex with them is seen and kept
    Given the empty graph
    And the traversal of
      """
      g.addV("person").property(single,"name","eve","acl","x").property(single,"name","eva").property(list,"n",1,"a",1).property(list,"n",1,"a",2).properties().values("acl","a")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1].i |
      | d[2].i |
    And the graph should return 1 for count of "g.V().properties(\"n\").has(\"a\",2)"
    And the graph should return 1 for count of "g.V().properties(\"name\").hasValue(\"eva\").hasNot(\"acl\")"
    And the graph should return 0 for count of "g.V().properties(\"name\").hasValue(\"eve\")"

  Scenario: a value and a meta-property that children compute
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().property(single,"age",__.constant(7),"n",__.properties().count(),"none",__.out().values("x"))
      """
    When iterated to list
    Then the result should have a count of 1
    And the graph should return 1 for count of "g.V().properties(\"age\").hasValue(7).has(\"n\",4).hasNot(\"none\")"

  Scenario: a child without a value writes nothing
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().property(single,"age",__.out().values("x"),"n",1)
      """
    When iterated to list
    Then the result should have a count of 1
    And the graph should return 0 for count of "g.V().properties(\"age\")"

  Scenario: dropping the vertex drops them
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().drop()
      """
    When iterated to list
    Then the result should be empty
    And the graph should return 0 for count of "g.V().properties().properties()"

  Scenario: a meta-property has none itself
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().properties("name").properties("acl").property("x",1)
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: nor through the long form
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().properties("name").property("x",1,"y",2)
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: nor has a property of an edge
    Given the empty graph
    And the traversal of
      """
      g.addV("a").as("a").addE("e").from("a").to("a").property("w",1,"x",2)
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: also of one that is there
    Given the empty graph
    And the graph initializer of
      """
      g.addV("a").as("a").addE("e").from("a").to("a").property("w",1)
      """
    And the traversal of
      """
      g.E().properties("w").property("x",1)
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: also as the long form
    Given the empty graph
    And the graph initializer of
      """
      g.addV("a").as("a").addE("e").from("a").to("a")
      """
    And the traversal of
      """
      g.E().property("w",1,"x",2)
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: a key without a value
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().property("a",1,"b")
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: a value that no property holds
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().property("a",1,"b",[1,"x"])
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: a key that is no text
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(id,"1").property(single,"name","ann","acl","public","since",2010).property(list,"place","ulm","from",1999).property(list,"place","bonn","from",2003,"to",2008).property(list,"place","ulm","from",2008)
      """
    And the traversal of
      """
      g.V().property("a",1,2,3)
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: ids of properties are numbers
    Given the modern graph
    And the traversal of
      """
      g.V().properties("name").id().is(typeOf(GType.INT)).dedup().count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[6].l |

  Scenario: properties are found by the id that answers show
    Given the modern graph
    And the traversal of
      """
      g.V("1").properties("name").hasId(1, 2, "x").count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[0].l |
