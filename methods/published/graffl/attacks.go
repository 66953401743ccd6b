package graffl

import (
	"strings"

	"parley/methods/mixture/inversion"
)

// attacker mounts the attacks on both algorithms.
type attacker struct{ *inversion.Attacker }

// studyOf makes a study of the victims' rows by an algorithm.
func studyOf(v *inversion.Victims, algorithm string, tailor func(*Options)) (setup, error) {
	o := &Options{Algorithm: algorithm, Components: v.Given.Components}
	o.Prior, _ = v.Prior()
	p, err := v.Study(inversion.NoProtection, o, func(key string) bool { return strings.HasPrefix(key, "algorithm") }, func() { tailor(o) })
	if err != nil {
		return setup{}, err
	}
	return setUp(p)
}
