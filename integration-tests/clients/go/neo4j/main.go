// Neo4j's Go driver against the service. Arguments: the address, and the password or an empty text.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
)

const rows = 100_000

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func ensure(holds bool, what ...any) {
	if !holds {
		panic(fmt.Sprint(what...))
	}
}

func elements(ctx context.Context, driver neo4j.DriverWithContext) {
	text := "CREATE (a:GoPerson {`~id`: 'go-ada', name: 'Ada'})-[k:GO_KNOWS {since: 1842}]->(b:GoPerson) RETURN a, k, $list AS list"
	answer, err := neo4j.ExecuteQuery(ctx, driver, text, map[string]any{"list": []any{1, 0.5, "Zoë", nil}}, neo4j.EagerResultTransformer)
	must(err)
	record := answer.Records[0].AsMap()
	a, k := record["a"].(neo4j.Node), record["k"].(neo4j.Relationship)
	ensure(a.ElementId == "go-ada" && a.Labels[0] == "GoPerson" && a.Props["name"] == "Ada", a)
	ensure(k.Type == "GO_KNOWS" && k.StartElementId == "go-ada" && k.Props["since"] == int64(1842), k)
	ensure(fmt.Sprint(record["list"]) == "[1 0.5 Zoë <nil>]", record["list"])
	ensure(answer.Summary.Counters().NodesCreated() == 2, answer.Summary.Counters())
}

func transactions(ctx context.Context, driver neo4j.DriverWithContext) {
	session := driver.NewSession(ctx, neo4j.SessionConfig{})
	defer session.Close(ctx)
	transaction, err := session.BeginTransaction(ctx)
	must(err)
	_, err = transaction.Run(ctx, "CREATE (:Go)", nil)
	must(err)
	must(transaction.Rollback(ctx))
	// A transaction that conflicts once is run again.
	_, err = session.Run(ctx, "CREATE (:GoCounter {n: 0})", nil)
	must(err)
	other := driver.NewSession(ctx, neo4j.SessionConfig{})
	defer other.Close(ctx)
	tries := 0
	_, err = session.ExecuteWrite(ctx, func(work neo4j.ManagedTransaction) (any, error) {
		tries++
		result, err := work.Run(ctx, "MATCH (c:GoCounter) SET c.n = c.n + 1", nil)
		if err != nil {
			return nil, err
		}
		if _, err = result.Consume(ctx); err != nil {
			return nil, err
		}
		if tries == 1 {
			_, err = other.Run(ctx, "MATCH (c:GoCounter) SET c.n = c.n + 1", nil)
			must(err)
		}
		return nil, nil
	})
	must(err)
	ensure(tries == 2, tries)
	result, err := session.Run(ctx, "MATCH (c:GoCounter) OPTIONAL MATCH (g:Go) WITH c, count(g) AS g RETURN c.n + g AS n", nil)
	must(err)
	record, err := result.Single(ctx)
	must(err)
	ensure(record.AsMap()["n"] == int64(2), record)
	ensure(len(session.LastBookmarks()) == 1, session.LastBookmarks())
}

func failures(ctx context.Context, driver neo4j.DriverWithContext) {
	_, err := neo4j.ExecuteQuery(ctx, driver, "RETURN 1 +", nil, neo4j.EagerResultTransformer)
	var failure *neo4j.Neo4jError
	ensure(errors.As(err, &failure) && failure.Code == "Neo.ClientError.Statement.SyntaxError", err)
}

func stream(ctx context.Context, driver neo4j.DriverWithContext) {
	session := driver.NewSession(ctx, neo4j.SessionConfig{FetchSize: 1000})
	defer session.Close(ctx)
	result, err := session.Run(ctx, "UNWIND range(1, $rows) AS n RETURN n", map[string]any{"rows": rows})
	must(err)
	expected := int64(1)
	for ; result.Next(ctx); expected++ {
		ensure(result.Record().Values[0] == expected, result.Record())
	}
	must(result.Err())
	ensure(expected == rows+1, expected)
}

func main() {
	ctx, address, password := context.Background(), os.Args[1], os.Args[2]
	auth := neo4j.NoAuth()
	if password != "" {
		auth = neo4j.BasicAuth("any name", password, "")
	}
	for _, scheme := range []string{"bolt", "neo4j"} {
		driver, err := neo4j.NewDriverWithContext(scheme+"://"+address, auth)
		must(err)
		must(driver.VerifyConnectivity(ctx))
		must(driver.Close(ctx))
	}
	driver, err := neo4j.NewDriverWithContext("bolt://"+address, auth)
	must(err)
	defer driver.Close(ctx)
	elements(ctx, driver)
	transactions(ctx, driver)
	failures(ctx, driver)
	stream(ctx, driver)
}
