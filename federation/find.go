package federation

import (
	"fmt"
	"strings"

	"parley/study"
)

// FindStudy returns which of the studies with these digests a person means: by the
// name of its plan, or by at least six digits of its digest.
func FindStudy(name string, digests []string, plan func(digest string) (*study.Plan, error)) (string, error) {
	var found, names, meant []string
	for _, d := range digests {
		p, err := plan(d)
		if err != nil { // one that cannot be read hides no other
			if len(name) >= 6 && strings.HasPrefix(d, name) {
				return "", err
			}
			continue
		}
		names = append(names, fmt.Sprintf("%s (%.12s)", p.Name, d))
		if p.Name == name || len(name) >= 6 && strings.HasPrefix(d, name) {
			found, meant = append(found, d), append(meant, names[len(names)-1])
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", fmt.Errorf("several studies are called %s\n  hint: name one by the first digits of its digest: %s", name, strings.Join(meant, ", "))
	case len(names) == 0:
		return "", fmt.Errorf("there is no study %s, and no other", name)
	}
	return "", fmt.Errorf("there is no study %s\n  hint: there is %s", name, strings.Join(names, ", "))
}

// ResultsName names the folder of a study's results, as parley run does.
func ResultsName(p *study.Plan) (string, error) {
	d, err := p.Digest()
	return p.Name + "-" + d.Short(), err
}
