package graffl

import (
	"strings"

	"parley/methods/mixture"
)

// attacker mounts the attacks on both algorithms.
type attacker struct{ *mixture.Attacker }

// studyOf makes a study of the victims' rows by an algorithm.
func studyOf(v *mixture.Victims, algorithm string, tailor func(*Options)) (setup, error) {
	o := &Options{Algorithm: algorithm, Components: v.Given.Components}
	o.Prior = v.Prior()
	p, err := v.Study(mixture.NoProtection, o, func(key string) bool { return strings.HasPrefix(key, "algorithm") }, func() { tailor(o) })
	if err != nil {
		return setup{}, err
	}
	return setUp(p)
}
