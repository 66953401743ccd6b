package ledger_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/ledger"
	"parley/privacy/policy"
	"parley/problem"
	"parley/sitestore"
)

func readLived(t *testing.T) (*ledger.Ledger, *aged) {
	t.Helper()
	m := lived(t)
	l := testkit.Get(ledger.Read(m))(t)
	return l, m
}

func TestViewSaysWhatIsSpentAndLeft(t *testing.T) {
	l, _ := readLived(t)
	rules := policy.Default()
	rules.Adjacency = account.AddRemove
	v := testkit.Get(l.Look(1e-5, &rules))(t)
	if len(v.Limits) != 1 || len(v.Studies) != 4 || v.Studies[2].Adjacency != account.ReplaceOne ||
		v.Studies[0].Unprotected != 1 {
		t.Fatalf("%+v", v)
	}
	one := v.Studies[1]
	want, err := account.Epsilon([]account.Mechanism{{Kind: account.Gaussian, Noise: 10, Rate: 1, Diameter: 2,
		Count: 2}, {Kind: account.Gaussian, Noise: 20, Rate: 1, Diameter: 2, Count: 1}}, account.AddRemove, 1e-5)
	if err != nil || one.Study != "one" || *one.Epsilon != want || one.Left != 3-want {
		t.Errorf("%+v, want ε %v; %v", one, want, err)
	}
	var text bytes.Buffer
	testkit.Do(t, v.Text(&text))
	for _, want := range []string{
		"none: without protection", "1 × v: Gaussian, sd 10 × the bound", "of a Poisson sample at rate 0.02",
		"3 (1 made again)",
		"\nold              1                 1      subject  add-remove   0 ",
		"\nall              6                 1 ", "6.006 of 8", "Against the policy's lifetime, over all studies",
		" %\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
	if _, err := l.Look(0, nil); err == nil {
		t.Error("δ = 0 was taken")
	}
	if none, err := l.Look(1e-5, nil); err != nil || none.Limits != nil || none.Studies != nil {
		t.Errorf("without a policy: %+v, %v", none, err)
	}
}

// What people read is never better than what is true, and adds up.
func TestSpentAndRemainingAreNeverTooGood(t *testing.T) {
	for _, c := range []struct {
		budget, spent float64
		text, left    string
	}{
		{3, 2.99992, "3", "0"}, {3, 2.3000001, "2.301", "0.699"}, {3, 0, "0", "3"}, {3, 5, "5", "0"},
		{10, 1.0001, "1.001", "8.999"},
	} {
		if got, left := ledger.Spent(&c.spent), ledger.Remaining(c.budget, &c.spent); got != c.text || left != c.left {
			t.Errorf("%v of %v: %s and %s, want %s and %s", c.spent, c.budget, got, left, c.text, c.left)
		}
	}
	if ledger.Spent(nil) != "no bound" || ledger.Remaining(3, nil) != "nothing" {
		t.Error("no bound is taken for one")
	}
}

func TestAuditorsGetEveryCharge(t *testing.T) {
	l, m := readLived(t)
	records := testkit.Get(ledger.Records(m, 1e-5))(t)
	if len(records) != len(l.Entries) {
		t.Fatalf("%d records of %d lines", len(records), len(l.Entries))
	}
	for i, r := range records {
		stored, _, err := m.Release(r.Entry.Release)
		if err != nil {
			t.Fatal(err)
		}
		left := stored.Sealed != nil && r.Entry.Release != records[min(i+1, len(records)-1)].Entry.Release ||
			i == len(records)-1 && stored.Sealed != nil
		if (r.Bytes > 0) != left || left && r.Bytes != len(stored.Sealed) || (r.Release != "") != left {
			t.Errorf("line %d: %d bytes, hash %q", r.Line, r.Bytes, r.Release)
		}
		if (r.Alone == nil) != (r.Request.Protection == privacy.Unprotected) || r.Hash != l.Entries[i].Hash ||
			len(r.Task) != 64 {
			t.Errorf("line %d: %+v", r.Line, r)
		}
	}
	records[2].Trust = &privacy.Trust{Openers: []string{"one", "two"}, Quorum: 5, Collusion: 1}
	var out bytes.Buffer
	testkit.Do(t, ledger.WriteRecords(&out, records))
	table, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(table) != len(records)+1 {
		t.Fatalf("%d rows, %v", len(table), err)
	}
	cell := func(line int, column string) string { return table[line][slices.Index(table[0], column)] }
	for column, want := range map[string]string{"line": "3", "study": "one", "attempt": "2",
		"protection": "differential", "guarantee_delta": "1e-06",
		"unit": "subject", "mechanism": "gaussian", "noise": "10", "count": "1", "seeded": "false",
		"openers": "one two", "quorum": "5", "collusion": "1", "line_sha256": records[2].Hash} {
		if got := cell(3, column); got != want {
			t.Errorf("line 3, %s: %q, want %q", column, got, want)
		}
	}
	if cell(1, "protection") != "none" || cell(1, "sum") != "" || cell(1, "epsilon_alone_add_remove") != "" {
		t.Errorf("without protection: %q", table[1])
	}
	if _, err := ledger.Records(m, 1); err == nil {
		t.Error("δ = 1 was taken")
	}
}

// forger is a store whose outbox does not hold what its ledger says.
type forger struct {
	*aged
	change func(id string, r *sitestore.Release)
	lines  func([]sitestore.Reservation)
}

func (f forger) Release(id string) (sitestore.Release, bool, error) {
	r, ok, err := f.aged.Release(id)
	if ok && f.change != nil {
		f.change(id, &r)
	}
	return r, ok, err
}

func (f forger) Reservations(after int) ([]sitestore.Reservation, error) {
	list, err := f.aged.Reservations(after)
	if f.lines != nil {
		f.lines(list)
	}
	return list, err
}

func TestLedgerAndOutboxBelongTogether(t *testing.T) {
	_, m := readLived(t)
	found, err := ledger.Verify(m)
	if err != nil || found.Lines != 6 || found.Releases != 5 || found.Stored < 1 || found.Bytes == 0 ||
		len(found.Head) != 64 {
		t.Fatalf("%+v, %v", found, err)
	}
	first, _, err := m.Release("one/north/1")
	if err != nil || first.Sealed == nil {
		t.Fatalf("nothing is stored: %v", err)
	}
	other, _, err := m.Release("one/north/2")
	if err != nil {
		t.Fatal(err)
	}
	unreadable := func(id string, r *sitestore.Release) {
		if id == "one/north/1" {
			r.Sealed = []byte("nonsense")
		}
	}
	swapped := func(id string, r *sitestore.Release) {
		if id == "one/north/1" {
			r.Sealed = other.Sealed
		}
	}
	for name, c := range map[string]struct {
		forger
		want string
	}{
		"bytes that are no release": {forger{m, unreadable, nil}, "decoding a release"},
		"another release's bytes": {forger{m, swapped, nil}, "the stored bytes are release one/north/2, and release " +
			"one/north/1 was charged"},
		"another task": {forger{m, nil, func(l []sitestore.Reservation) { l[2].Task[0]++ }},
			"it charges another task than line 2 did"},
		"a cheaper charge": {forger{m, nil, func(l []sitestore.Reservation) { l[2].Request = l[4].Request }},
			"was charged"},
		"a round that is another's": {forger{m, nil, func(l []sitestore.Reservation) { l[3].Release = "one/north/7" }},
			"charged for round 2 under the name one/north/7"},
	} {
		_, err := ledger.Verify(c.forger)
		if list := (problem.List)(nil); !errors.As(err, &list) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ledger.Verify(forger{m, nil, func(l []sitestore.Reservation) { l[0].Request = []byte{7} }}); err ==
		nil || !strings.Contains(err.Error(), "line 1 of the ledger") {
		t.Errorf("a line that cannot be read: %v", err)
	}
}

func TestAdmissionGivesEveryReason(t *testing.T) {
	l := &ledger.Ledger{}
	rules := policy.Default()
	s := guaranteed(privacy.Subject, account.AddRemove, 3, 1e-5)
	s.Digest, s.Subjects = "new", 400
	requests := []privacy.Request{differential(vectors(6, 2)), differential(vectors(6, 2))}
	a, err := l.Admits(rules, s, 1e-5, requests...)
	if err != nil || !a.Admitted || len(a.Reasons) > 0 || len(a.Charge) != 2 || a.Before[0].Left != 1 ||
		!(a.After[0].Left < 1 && a.After[0].Left > 0) {
		t.Fatalf("%+v, %v", a, err)
	}
	if len(l.Entries) != 0 {
		t.Error("asking has charged the ledger")
	}

	s.Subjects, s.Quorum, s.Guarantee = 20, 1, nil
	a, err = l.Admits(rules, s, 1e-5, request, request, requests[0])
	if err != nil || a.Admitted || a.Exact != 2 {
		t.Fatalf("%+v, %v", a, err)
	}
	text := a.Problems("policy.yaml").Err().Error()
	for _, want := range []string{
		"policy.yaml: site north: minimum.sites: ", "site north: minimum.subjects: ",
		"site north: protection: it demands differential privacy", "site north: per_release: ", "  hint: ",
	} {
		if strings.Count(text, want) < 1 {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Count(text, "it demands differential privacy") != 1 {
		t.Errorf("a reason stands twice:\n%s", text)
	}

	if no := a.Refusal(); !errors.Is(no, privacy.ErrRefused) ||
		!strings.Contains(no.Error(), "it demands differential privacy") {
		t.Errorf("as a refusal: %v", no)
	}
	if lines := strings.Join(a.Lines(), "\n"); !strings.Contains(lines, "releases without noise: at most 2") ||
		!strings.Contains(lines, "lifetime") || strings.Contains(lines, "after this study") {
		t.Errorf("in words:\n%s", lines)
	}

	// What was begun was agreed to, and is not counted a second time.
	s = guaranteed(privacy.Subject, account.AddRemove, 3, 1e-5)
	s.Digest, s.Subjects = "new", 400
	for _, r := range requests {
		l.Entries = append(l.Entries, ledger.Entry{Study: "new", Request: r})
	}
	a, err = l.Admits(rules, s, 1e-5, requests...)
	if err != nil || !a.Begun || !a.Admitted || a.Before[0].Left != a.After[0].Left {
		t.Errorf("%+v, %v", a, err)
	}
	var out bytes.Buffer
	refused := testkit.Get(l.Admits(rules, privacy.Study{Digest: "x", Site: "south", Quorum: 3}, 1e-5, request))(t)
	testkit.Do(t, ledger.PrintAdmissions(&out, []*ledger.Admission{a, refused}))
	for _, want := range []string{"yes, has begun  400", "south  no", "not counted",
		"no bound: 1 releases without noise"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if _, err := l.Admits(policy.Policy{MaxDelta: 7}, s, 1e-5); err == nil {
		t.Error("a policy that makes no sense was taken")
	}
}

func ExampleRecords() {
	m := sitestore.NewMemory()
	s := privacy.Study{Digest: "3fa9", Site: "north", Method: "factors"}
	if _, err := admit(s, privacy.SimulationPolicy(), m, privacy.Ask{Study: "3fa9", Site: "north", Round: 1},
		differential(vectors(2, 3))); err != nil {
		panic(err)
	}
	records, err := ledger.Records(m, 1e-5)
	if err != nil {
		panic(err)
	}
	b, err := json.Marshal(records[0].Request.Sums[0].Mechanism)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s: ε %s alone\n", b, ledger.Spent(records[0].Alone[0].Epsilon))
	// Output:
	// {"kind":"gaussian","noise":2,"rate":1,"diameter":2,"count":1}: ε 1.994 alone
}
