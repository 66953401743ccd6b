package attack_test

import (
	"fmt"

	"parley/judge/attack"
	"parley/method"
	"parley/methods/factors"
	"parley/methods/mixture"
	"parley/methods/regression"
)

func ExampleTargets() {
	fmt.Println(attack.Targets(method.Registry{factors.Method{}, regression.Method{}, mixture.Method{}}))
	// Output: [graffl]
}
