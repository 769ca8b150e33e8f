Feature: steps over two lists, and tests of all items

  Scenario: none passes lists without an item that passes
    Given the empty graph
    And the traversal of
      """
      g.inject([1, 2], [3, 4], [], 5).none(gt(2))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | l[d[1].i,d[2].i] |
      | l[] |

  Scenario: all and any of an empty list
    Given the empty graph
    And the traversal of
      """
      g.inject([], {1}).union(all(gt(0)), any(gt(0)))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | l[] |
      | s[d[1].i] |
      | s[d[1].i] |

  @gremlin-3.7
  Scenario: a test without an answer does not pass
    Given the empty graph
    And the traversal of
      """
      g.inject(["a", 1]).union(all(gt(0)), none(gt(2)))
      """
    When iterated to list
    Then the result should be empty

  Scenario: a list test takes predicates with parts
    Given the empty graph
    And the traversal of
      """
      g.inject([1, 5], [3]).all(lt(2).or(gt(4)))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | l[d[1].i,d[5].i] |

  Scenario: sets have distinct items
    Given the empty graph
    And the traversal of
      """
      g.inject([1, 1, 2, 3]).difference([3])
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | s[d[1].i,d[2].i] |

  Scenario: merge of two maps takes the entries of the second
    Given the empty graph
    And the traversal of
      """
      g.inject(["a": 1, "b": 1]).merge(["b": 2])
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"a":"d[1].i","b":"d[2].i"}] |

  Scenario: a map merges with a map only
    Given the empty graph
    And the traversal of
      """
      g.inject(["a": 1]).merge([1])
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: a step over lists takes a set and a path
    Given the modern graph
    And the traversal of
      """
      g.V().has("name","marko").out("created").path().by("name").intersect({"lop"})
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | s[lop] |

  Scenario: a child without a result is no list
    Given the empty graph
    And the traversal of
      """
      g.inject([1]).combine(constant(1).is(2))
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: conjoin writes all kinds of items
    Given the modern graph
    And the traversal of
      """
      g.V().has("name","marko").fold().combine([1.5, null, "a"]).conjoin(";")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | str[v[1];1.5;a] |

  Scenario: index counts the items of a list from 0
    Given the empty graph
    And the traversal of
      """
      g.inject(["a", "b"]).index()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | l[l[a,d[0].i],l[b,d[1].i]] |

  Scenario: index makes a map
    Given the empty graph
    And the traversal of
      """
      g.inject(["a", "b"]).index().with(WithOptions.indexer, WithOptions.map)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"d[0].i":"a","d[1].i":"b"}] |

  Scenario: fold with an operator starts with the seed
    Given the empty graph
    And the traversal of
      """
      g.inject(1, 2, 3).fold(10, minus)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[4].i |

  Scenario: fold with an operator without traversers is the seed
    Given the empty graph
    And the traversal of
      """
      g.V().fold(["x"], addAll)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | l[x] |

  Scenario: fold collects sets
    Given the empty graph
    And the traversal of
      """
      g.inject([1, 2], [2, 3]).fold({0}, Operator.addAll)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | s[d[0].i,d[1].i,d[2].i,d[3].i] |

  Scenario: fold joins booleans and takes the last
    Given the empty graph
    And the traversal of
      """
      g.inject(true, false).union(fold(true, and), fold(false, or), fold(null, assign))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | false |
      | true |
      | false |

  Scenario: fold with an operator refuses other types
    Given the empty graph
    And the traversal of
      """
      g.inject("a").fold(1, sum)
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: fold with an operator is exact
    Given the empty graph
    And the traversal of
      """
      g.inject(9223372036854775807, 1).fold(0, sum)
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: fold with an operator inside a group
    Given the modern graph
    And the traversal of
      """
      g.V().hasLabel("person").group().by(label()).by(values("age").fold(0, max))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"person":"d[35].i"}] |

  Scenario: a null is not equal to a value, and none passes it
    Given the empty graph
    And the traversal of
      """
      g.inject([null, "b"], [null], ["a"]).none(eq("a"))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | l[null,b] |
      | l[null] |

  Scenario: none passes a list by a test of types
    Given the empty graph
    And the traversal of
      """
      g.inject([1, "b"], [null, 1]).none(typeOf(GType.STRING))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | l[null,d[1].i] |
