package problem_test

import (
	"errors"
	"fmt"
	"testing"

	"parley/problem"
)

func ExampleList() {
	var l problem.List
	l.Add(problem.Problem{File: "plan.yaml", Line: 7, Column: 3, Where: "method.latnet", What: "unknown key", Hint: "did you mean latent?"})
	l.Add(problem.Problem{File: "plan.yaml", Line: 2, Where: "name", What: "missing"})
	fmt.Println(l.Err())
	// Output:
	// plan.yaml:2: name: missing
	// plan.yaml:7:3: method.latnet: unknown key
	//   hint: did you mean latent?
}

func TestEmptyListIsNoError(t *testing.T) {
	if err := (problem.List{}).Err(); err != nil {
		t.Fatalf("an empty list is an error: %v", err)
	}
}

func TestProblemsCanBeFoundInAList(t *testing.T) {
	l := problem.List{{What: "first"}, {What: "second", Line: 4}}
	var p problem.Problem
	if err := fmt.Errorf("checking: %w", l.Err()); !errors.As(err, &p) || p.What != "first" {
		t.Fatalf("got %+v", p)
	}
}
