package attack_test

import (
	"fmt"

	"parley/judge/attack"
	"parley/method"
	"parley/methods/graffl"
	"parley/methods/mvppca"
	"parley/methods/pvi"
)

func ExampleTargets() {
	fmt.Println(attack.Targets(method.Registry{mvppca.Method{}, pvi.Method{}, graffl.Method{}}))
	// Output: [graffl]
}
