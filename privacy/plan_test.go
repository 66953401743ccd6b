package privacy_test

import (
	"reflect"
	"testing"

	"parley/internal/testkit"
	"parley/privacy"
	"parley/privacy/account"
	plans "parley/study"
)

func TestGatesLearnWhatThePlanPromises(t *testing.T) {
	b := account.Budget{Epsilon: 3, Delta: 1e-5}
	p := &plans.Plan{Version: 1, Name: "s", Sites: []string{"north", "centre", "south"}, Privacy: plans.Privacy{
		Protection: plans.ProtectionDifferential, Unit: "subject", Adjacency: account.ReplaceOne, Total: &b,
	}}
	p.Quorum, p.Method = 2, plans.Method{Name: "toy", Options: &struct{}{}}
	list := []privacy.Listed{{Kind: "fit", Times: 3, Request: request}, {Kind: "look", Times: 1, Request: request}}
	s := testkit.Get(privacy.StudyOf(p, "south", list))(t)
	digest, err := p.Digest()
	if err != nil || s.Digest != digest.String() || s.Site != "south" || s.Method != "toy" || s.Sites != 3 ||
		s.Quorum != 2 || !reflect.DeepEqual(s.Requests, list) || len(privacy.Requests(list)) != 4 ||
		s.Guarantee == nil || *s.Guarantee != (privacy.Guarantee{Unit: privacy.Subject, Adjacency: account.ReplaceOne,
		Budget: b}) {
		t.Errorf("got %+v, %v", s, err)
	}
	p.Privacy.Total, p.Privacy.PerRelease = nil, &b
	if s, err = privacy.StudyOf(p, "south", list); err != nil || s.Guarantee != nil {
		t.Errorf("a published plan promises %+v, %v", s.Guarantee, err)
	}
}
