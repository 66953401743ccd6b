package judge_test

import (
	"fmt"

	"parley/judge"
	"parley/method"
	"parley/methods/factors"
	"parley/methods/mixture"
	"parley/methods/regression"
)

func ExampleAttackTargets() {
	fmt.Println(judge.AttackTargets(method.Registry{factors.Method{}, regression.Method{}, mixture.Method{}}))
	// Output: [graffl]
}
