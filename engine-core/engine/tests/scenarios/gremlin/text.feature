Feature: steps over strings

  Scenario: asString writes every kind of value
    Given the empty graph
    And the traversal of
      """
      g.inject(1.5, true, [1, [null, "a"]], ["k": [2]], datetime("2020-01-01T00:00:00Z")).asString()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | 1.5 |
      | str[true] |
      | str[[1, [null, a]]] |
      | str[{k=[2]}] |
      | str[2020-01-01T00:00Z] |

  Scenario: asString reads elements inside of other values
    Given the modern graph
    And the traversal of
      """
      g.V().has("name","marko").outE("created").as("e").inV().path().asString()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | str[path[v[1], e[9][1-created->3], v[3]]] |

  Scenario: asString shortens the value of a property
    Given the empty graph
    And the traversal of
      """
      g.addV().property("k","a text of more than twenty characters").properties("k").asString()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | str[vp[k->a text of more th...]] |

  Scenario: local scope takes a set and a single string
    Given the empty graph
    And the traversal of
      """
      g.inject({"a ", " b"}, " c ").trim(local)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | l[a,b] |
      | c |

  Scenario: local scope refuses a list of numbers
    Given the empty graph
    And the traversal of
      """
      g.inject([1, 2]).toUpper(local)
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: positions and lengths count characters
    Given the empty graph
    And the traversal of
      """
      g.inject("😀aé").union(length(), substring(0, 1), substring(-1))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[3].i |
      | 😀 |
      | é |

  Scenario: a start after the end gives an empty text
    Given the empty graph
    And the traversal of
      """
      g.inject("abc").substring(2, 1)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | str[] |

  Scenario: positions outside of the text are its ends
    Given the empty graph
    And the traversal of
      """
      g.inject("abc").union(substring(-9, 9), substring(7), substring(9223372036854775807, -9223372036854775808))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | abc |
      | str[] |
      | str[] |

  Scenario: split joins adjacent separators
    Given the empty graph
    And the traversal of
      """
      g.inject("a,,b").split(",")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | l[a,b] |

  Scenario: split without a text between characters
    Given the empty graph
    And the traversal of
      """
      g.inject("añ").split("")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | l[a,ñ] |

  Scenario: replace takes variables and nulls
    Given the empty graph
    And the traversal of
      """
      g.inject("aa").replace(null, "b")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | aa |

  Scenario: replace with a null needs a string too
    Given the empty graph
    And the traversal of
      """
      g.inject(1).replace(null, "b")
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: concat skips nulls and children without a result
    Given the modern graph
    And the traversal of
      """
      g.V().has("name","vadas").values("name").concat("-", null).concat(constant("x").is("y"))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | vadas- |

  Scenario: concat takes strings only
    Given the empty graph
    And the traversal of
      """
      g.inject("a").concat(constant(1))
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: reverse leaves other values alone
    Given the empty graph
    And the traversal of
      """
      g.inject(["a": 1], {1, 2}, 3).reverse()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"a":"d[1].i"}] |
      | l[d[2].i,d[1].i] |
      | d[3].i |

  Scenario: format takes by() in turn
    Given the modern graph
    And the traversal of
      """
      g.V().has("name","marko").format("%{_}/%{_}/%{_}").by("name").by("age")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | marko/29/marko |

  Scenario: format prefers the property of an element to a label
    Given the modern graph
    And the traversal of
      """
      g.V().has("name","marko").as("age").format("%{age}")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | 29 |

  Scenario: format reads maps and labels of other values
    Given the empty graph
    And the traversal of
      """
      g.inject(["a": 1]).as("m").format("%{a}").as("x").format("<%{x}>")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | str[<1>] |

  Scenario: two percent signs are no variable, and an open brace is text
    Given the empty graph
    And the traversal of
      """
      g.inject(1).format("100%%{a} %{ %")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | str[100%%{a} %{ %] |

  Scenario: format drops traversers without a value
    Given the modern graph
    And the traversal of
      """
      g.V().hasLabel("software").format("%{age}")
      """
    When iterated to list
    Then the result should be empty

  Scenario: a string step is a condition
    Given the modern graph
    And the traversal of
      """
      g.V().where(values("name").toUpper().is(startingWith("J"))).values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | josh |

  Scenario: a string step is a key of a group
    Given the modern graph
    And the traversal of
      """
      g.V().hasLabel("person").groupCount().by(values("name").substring(0, 1))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"m":"d[1].l","v":"d[1].l","j":"d[1].l","p":"d[1].l"}] |
