package attack_test

import (
	"fmt"

	"parley/attack"
	"parley/graffl"
	"parley/method"
	"parley/mvppca"
	"parley/pvi"
)

func ExampleTargets() {
	fmt.Println(attack.Targets(method.Registry{mvppca.Method{}, pvi.Method{}, graffl.Method{}}))
	// Output: [graffl]
}
