package host_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine"
	"parley/engine/enginetest"
	"parley/engine/host"
	"parley/engine/wire"
	"parley/internal/testkit"
	encoding "parley/internal/wire"
	"parley/method"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/policy"
	"parley/sitestore"
	"parley/study"
)

func hostOf(store host.Store, data dataset.Source) *host.Host {
	return &host.Host{Site: "north", Methods: method.Registry{enginetest.Toy{}}, Data: data, Store: store,
		Policy: privacy.SimulationPolicy()}
}

var (
	plan  = enginetest.ToyPlan(enginetest.ToyOptions{Rounds: 3, Private: true}, 2, "north", "centre", "south")
	exact = enginetest.ToyPlan(enginetest.ToyOptions{Rounds: 3}, 2, "north", "centre", "south")
)

// A preview says what a study may ask for and cost, and leaves no trace.
func TestPreviewChangesNothing(t *testing.T) {
	store := sitestore.NewMemory()
	p := testkit.Get(hostOf(store, enginetest.ToyRows(7)).Preview(t.Context(), plan))(t)
	if p.Subjects != 7 || len(p.Requests) != 1 || p.Requests[0].Times != 3 || !p.Admission.Admitted ||
		p.Method != "toy" || p.Revision != 1 {
		t.Errorf("got %+v", p)
	}
	if lines, _ := store.Reservations(0); len(lines) != 0 {
		t.Errorf("%d charges", len(lines))
	}
	strict := hostOf(store, enginetest.ToyRows(7))
	strict.Policy = policy.Default()
	if p, err := strict.Preview(t.Context(), plan); err != nil || p.Admission.Admitted ||
		len(p.Admission.Reasons) == 0 {
		t.Errorf("under a strict policy: %+v, %v", p.Admission, err)
	}
	if _, err := strict.Open(t.Context(), plan); !errors.Is(err, privacy.ErrRefused) {
		t.Errorf("opened under a strict policy: %v", err)
	}
}

// Before a person approves, a preview says what the promise is worth for somebody with several rows where ids look like
// visits, unless the plan names the column that identifies a person.
func TestPreviewOfVisits(t *testing.T) {
	for _, person := range []string{"", "patient"} {
		p := *plan
		p.Privacy.Person = person
		var rows []dataset.Row
		for i := range 20 {
			rows = append(rows, dataset.Row{ID: fmt.Sprintf("p%03d-%d", i/5, i%5+1), Person: fmt.Sprint("Q", i/5),
				Views: [][]float64{{float64(i)}}})
		}
		seen := testkit.Get(hostOf(sitestore.NewMemory(), testkit.Get(dataset.NewTable(p.Schema(), rows))(t)).Preview(
			t.Context(), &p))(t)
		var b strings.Builder
		testkit.Do(t, seen.Text(&b))
		text := strings.Join(strings.Fields(b.String()), " ")
		for says, want := range map[string]bool{
			"for a person with 5 rows. Name the column that identifies a person": person == "",
			"the plan states that every row is another person.":                  person == "",
			"all rows with the same patient together":                            person != "",
			"too narrow": false, "Q3": false,
		} {
			if strings.Contains(text, says) != want {
				t.Errorf("person %q: that it says %q is %v:\n%s", person, says, !want, b.String())
			}
		}
	}
}

// broken has a cell that cannot be read.
type broken struct{ enginetest.ToyRows }

func (b broken) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		for row := range b.ToyRows.Rows(ctx) {
			if !yield(row, nil) {
				return
			}
		}
		yield(nil, errors.New("line 9: about five is not a number"))
	}
}

// Every cell is checked before anything is charged or agreed to: by whoever approves, and
// of an exact study once more. Nothing tells others of a cell where all that leaves is noised.
func TestBadCellsAreFoundBeforeAnything(t *testing.T) {
	store := sitestore.NewMemory()
	h := hostOf(store, broken{3})
	for _, p := range []*study.Plan{plan, exact} {
		if _, err := h.Approve(t.Context(), p, nil, host.ByPerson); err == nil ||
			!strings.Contains(err.Error(), "about five") {
			t.Errorf("approved: %v", err)
		}
	}
	if _, err := h.Open(t.Context(), exact); err == nil || !strings.Contains(err.Error(), "about five") {
		t.Errorf("opened: %v", err)
	}
	if _, err := h.Open(t.Context(), plan); err != nil {
		t.Errorf("a bad cell shows: %v", err)
	}
	if _, err := hostOf(store, enginetest.ToyRows(3)).Open(t.Context(), exact); err != nil {
		t.Errorf("after the cell was mended: %v", err)
	}
}

// failing has rows that can be counted once, and a disk that is gone when they are summed.
type failing struct {
	enginetest.ToyRows
	counted *bool
}

func (f failing) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	if !*f.counted {
		*f.counted = true
		return f.ToyRows.Rows(ctx)
	}
	return func(yield func(*dataset.Row, error) bool) { yield(nil, errors.New("the disk is gone")) }
}

// What was charged for some data is answered with no others, whoever had the study open before.
func TestAChargeIsForItsDataAlone(t *testing.T) {
	store := sitestore.NewMemory()
	before, task := opened(t, hostOf(store, enginetest.ToyRows(9)))
	charged, _ := opened(t, hostOf(store, failing{7, new(bool)}))
	if _, err := charged.Handle(t.Context(), task, engine.Past{}); err == nil {
		t.Fatal("summed without a disk")
	}
	if lines, _ := store.Reservations(0); len(lines) != 1 {
		t.Fatalf("%d charges", len(lines))
	}
	if _, err := before.Handle(t.Context(), task, engine.Past{}); !errors.Is(err, engine.ErrChanged) {
		t.Errorf("nine rows for a charge of seven: %v", err)
	}
	begin(t, hostOf(store, enginetest.ToyRows(7)))
}

// full is a store in which nothing can be charged.
type full struct{ *sitestore.Memory }

func (full) Reserve(sitestore.Reservation, [32]byte) error { return errors.New("the disk is full") }

// Where terms are final and the charge then failed, other data are refused to whoever approves.
func TestTermsWithoutACharge(t *testing.T) {
	store := sitestore.NewMemory()
	site, task := opened(t, hostOf(full{store}, enginetest.ToyRows(9)))
	if _, err := site.Handle(t.Context(), task, engine.Past{}); err == nil {
		t.Fatal("charged on a full disk")
	}
	other := hostOf(store, enginetest.ToyRows(7))
	if _, err := other.Approve(t.Context(), plan, []byte("key"), host.ByPerson); !errors.Is(err, engine.ErrChanged) {
		t.Errorf("approved: %v", err)
	}
	if lines, _ := store.Reservations(0); len(lines) != 0 {
		t.Errorf("%d charges", len(lines))
	}
	begin(t, hostOf(store, enginetest.ToyRows(9)))
}

// revised is the toy with other numbers.
type revised struct{ enginetest.Toy }

func (revised) Revision() int { return 2 }

// opened opens the study, and makes its first task.
func opened(t *testing.T, h *host.Host) (*engine.Site, []byte) {
	t.Helper()
	site := testkit.Get(h.Open(t.Context(), plan))(t)
	task, _, err := taskOf(site.Study, 1)
	testkit.Do(t, err)
	return site, task
}

// begin opens the study and answers its first task.
func begin(t *testing.T, h *host.Host) {
	t.Helper()
	site, task := opened(t, h)
	testkit.Get(site.Handle(t.Context(), task, engine.Past{}))(t)
}

// A study goes on with the data and the revision of the method that it began with.
// Before its first charge, both may change.
func TestStudyKeepsItsTerms(t *testing.T) {
	store := sitestore.NewMemory()
	before := testkit.Get(hostOf(store, enginetest.ToyRows(9)).Open(t.Context(), plan))(t)
	begin(t, hostOf(store, enginetest.ToyRows(7)))
	task, past, err := taskOf(before.Study, 2)
	testkit.Do(t, err)
	if _, err := before.Handle(t.Context(), task, past); !errors.Is(err, engine.ErrChanged) {
		t.Errorf("a task for the data before: %v", err)
	}
	other8 := testkit.Get(hostOf(store, enginetest.ToyRows(8)).Open(t.Context(), plan))(t)
	if _, err := other8.Handle(t.Context(), task, past); !errors.Is(err, engine.ErrChanged) ||
		!strings.Contains(err.Error(), "put the data back") {
		t.Errorf("other data: %v", err)
	}
	answered, _, err := taskOf(before.Study, 1)
	testkit.Do(t, err)
	if _, err := other8.Handle(t.Context(), answered, engine.Past{}); err != nil {
		t.Errorf("what was answered is sent again, without a look at the rows: %v", err)
	}
	if lines, _ := store.Reservations(0); len(lines) != 1 {
		t.Errorf("%d charges", len(lines))
	}
	h := hostOf(store, enginetest.ToyRows(7))
	h.Methods = method.Registry{revised{}}
	if _, err := h.Open(t.Context(), plan); !errors.Is(err, engine.ErrChanged) ||
		!strings.Contains(err.Error(), "had revision 1, and this program has 2") {
		t.Errorf("another revision: %v", err)
	}
	other := hostOf(store, enginetest.ToyRows(7))
	other.Site = "south"
	if _, err := other.Open(t.Context(), plan); !errors.Is(err, sitestore.ErrOtherSite) {
		t.Errorf("another site's store: %v", err)
	}
	if _, err := hostOf(store, enginetest.ToyRows(7)).Open(t.Context(), plan); err != nil {
		t.Errorf("the same again: %v", err)
	}
}

// Receipts notice a store that was put back, until a person has decided; and keep
// what a coordinator has countersigned, which anybody can verify.
func TestReceiptsNoticeAnOldStore(t *testing.T) {
	dir := t.TempDir()
	receipts := host.Receipts(filepath.Join(dir, "receipts.json"))
	path := filepath.Join(dir, "site.db")
	answer := func(round int) error {
		store := testkit.Get(sitestore.Open(path))(t)
		defer store.Close()
		h := hostOf(store, enginetest.ToyRows(7))
		h.Marks = receipts
		site := testkit.Get(h.Open(t.Context(), plan))(t)
		task, past, err := taskOf(site.Study, round)
		if err != nil {
			t.Fatal(err)
		}
		_, err = site.Handle(t.Context(), task, past)
		if e := (*engine.RolledBackError)(nil); round < 0 && errors.As(err, &e) {
			return h.GoOn(site.Study, e)
		}
		return err
	}
	testkit.Do(t, answer(1))
	old := testkit.Get(os.ReadFile(path))(t)
	testkit.Do(t, answer(2))
	testkit.Do(t, os.WriteFile(path, old, 0o600))
	var e *engine.RolledBackError
	if err := answer(2); !errors.As(err, &e) || e.Shown.Lines != 2 {
		t.Fatalf("an old store answered: %v", err)
	}
	if err := answer(-1); err != nil { // a person decides
		t.Fatal(err)
	}
	if err := answer(2); err != nil {
		t.Errorf("after the decision: %v", err)
	}
	if mark, err := receipts.Load(); err != nil || mark.Lines != 2 {
		t.Errorf("the mark is %+v, %v", mark, err)
	}
	testkit.Do(t, receipts.Confirm("s", wire.Receipt{Study: "s", Site: "north", Mark: engine.Mark{Lines: 2},
		Records: 4}))
	var back wire.Receipt
	if err := receipts.Confirmed("s", &back); err != nil || back.Records != 4 || back.Mark.Lines != 2 {
		t.Errorf("read back: %+v, %v", back, err)
	}
	data, err := os.ReadFile(string(receipts))
	if err != nil || !strings.Contains(string(data), `"confirmed"`) ||
		!strings.Contains(string(data), `"ledger_lines": 2`) {
		t.Errorf("the file says %s, %v", data, err)
	}
	testkit.Do(t, os.WriteFile(string(receipts), []byte("{"), 0o600))
	if err := answer(3); err == nil || !strings.Contains(err.Error(), "receipts") {
		t.Errorf("damaged receipts: %v", err)
	}
}

// taskOf makes a task, after rounds in which another site alone has answered.
func taskOf(study string, round int) (task []byte, past engine.Past, err error) {
	var head [32]byte
	for i := 1; i < round && err == nil; i++ {
		var record []byte
		record, err = encoding.Marshal(engine.Record{Round: i, Sites: []int{1}, Releases: make([]byte, 32)})
		past.Records, head = append(past.Records, record), sitestore.Next(head, record)
	}
	if err == nil {
		task, err = enginetest.Task(study, "north", 1, max(round, 1), "ask", fmt.Append(nil, round), head)
	}
	return task, past, err
}

func Example() {
	plan := enginetest.ToyPlan(enginetest.ToyOptions{Rounds: 2}, 1, "north")
	h := &host.Host{
		Site: "north", Methods: method.Registry{enginetest.Toy{}}, Data: enginetest.ToyRows(100),
		Store: sitestore.NewMemory(), Policy: privacy.SimulationPolicy(),
	}
	p, err := h.Preview(context.Background(), plan)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Subjects, "subjects;", p.Requests[0].Kind, "at most", p.Requests[0].Times, "times; takes part:",
		p.Admission.Admitted)
	site, err := h.Open(context.Background(), plan)
	fmt.Println(site.Name, err)
	// Output:
	// 100 subjects; ask at most 2 times; takes part: true
	// north <nil>
}

// shifted has other values in the same rows.
type shifted struct{ enginetest.ToyRows }

func (s shifted) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		for row, err := range s.ToyRows.Rows(ctx) {
			row.Views[0][0]++
			if !yield(row, err) {
				return
			}
		}
	}
}

// One other value is other data.
func TestEveryCellIsInTheFingerprint(t *testing.T) {
	store := sitestore.NewMemory()
	begin(t, hostOf(store, enginetest.ToyRows(7)))
	if _, err := hostOf(store, shifted{7}).Approve(t.Context(), plan, nil, host.ByPerson); !errors.Is(err,
		engine.ErrChanged) {
		t.Errorf("other values: %v", err)
	}
}

// A lifetime holds for all studies together, also for two that were opened side by side.
func TestStudiesShareALifetime(t *testing.T) {
	store := sitestore.NewMemory()
	var sites []*engine.Site
	for _, name := range []string{"one", "other"} {
		p := *plan
		p.Name = name
		h := hostOf(store, enginetest.ToyRows(7))
		h.Policy.Adjacency = account.AddRemove
		h.Policy.Lifetime = &policy.Lifetime{Epsilon: 1.3 * p.Privacy.Total.Epsilon, Delta: 1e-5,
			Filter: policy.GaussianFilter}
		sites = append(sites, testkit.Get(h.Open(t.Context(), &p))(t))
	}
	granted, last := 0, error(nil)
	for round := range 3 {
		for _, site := range sites {
			task, past, err := taskOf(site.Study, round+1)
			testkit.Do(t, err)
			if _, err := site.Handle(t.Context(), task, past); err == nil {
				granted++
			} else if last = err; !errors.Is(err, privacy.ErrRefused) || !strings.Contains(err.Error(), "lifetime") {
				t.Fatal(err)
			}
		}
	}
	if granted < 3 || last == nil {
		t.Errorf("%d of 6 releases were granted, the last refusal was %v", granted, last)
	}
}

// What is decided without a person looks at no row: what it reads would be an answer to
// whoever chose the plan.
func TestRulesReadNoRow(t *testing.T) {
	for _, by := range []string{host.ByRule, host.ByFile} {
		h := hostOf(sitestore.NewMemory(), unreadable{t})
		h.Policy = policy.Policy{Version: 1, Size: 2718, Minimum: policy.Minimum{Subjects: 50},
			PreApproval: &policy.PreApproval{Methods: []string{"toy"}, Study: account.Budget{Epsilon: 9, Delta: 1e-5}}}
		p := *plan
		total := *p.Privacy.Total
		total.Delta = 1 / (100 * 2718.)
		p.Privacy.Total = &total
		total.Epsilon = 6
		a := testkit.Get(h.Approve(t.Context(), &p, key, by))(t)
		if a.Data != "" {
			t.Errorf("by %s: data %q", by, a.Data)
		}
		testkit.Do(t, h.Approved(t.Context(), &p, key, a))
		testkit.Get(h.Open(t.Context(), &p))(t)
		total.Delta *= 1.001
		if _, err := h.Approve(t.Context(), &p, key, by); !errors.Is(err, privacy.ErrRefused) ||
			!strings.Contains(err.Error(), "max_delta") {
			t.Errorf("by %s, δ above what the size allows: %v", by, err)
		}
		h.Policy.Size = 49
		if _, err := h.Open(t.Context(), &p); !errors.Is(err, privacy.ErrRefused) ||
			!strings.Contains(err.Error(), "minimum.subjects") {
			t.Errorf("opened at a site of size 49: %v", err)
		}
	}
}

// unreadable has rows that nobody may ask for.
type unreadable struct{ t *testing.T }

func (u unreadable) Schema() dataset.Schema { return enginetest.ToyRows(1).Schema() }

func (u unreadable) Rows(context.Context) iter.Seq2[*dataset.Row, error] {
	u.t.Error("rows were read")
	return func(func(*dataset.Row, error) bool) {}
}

// coded has these values where the toy's rows would have others.
type coded struct {
	enginetest.ToyRows
	values []float64
}

func (c coded) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		i := 0
		for row, err := range c.ToyRows.Rows(ctx) {
			if row.Views[0][0] += 0.5; i < len(c.values) {
				row.Views[0][0] = c.values[i]
			}
			if i++; !yield(row, err) {
				return
			}
		}
	}
}

// What speaks against a site's rows opens the site's own report, whatever the method says of them,
// and whether they were looked at before or not.
func TestReportOpensWithWhatTheRowsShow(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   []string
	}{
		{nil, nil},
		{[]float64{999, 999}, []string{"View v, feature x: 999, at 2 of 40 subjects, looks like a code for a missing " +
			"value"}},
		{[]float64{-9, 999}, []string{"View v, feature x: -9, at 1 of 40 subjects, looks like a code for a missing " +
			"value", "View v, feature x: 999, at 1 of 40 subjects, looks like a code for a missing value"}},
		{[]float64{1e308, -1e308}, []string{"View v, feature x: values from -1e+308 to 1e+308 are too large to be " +
			"summarised"}},
	} {
		h := hostOf(sitestore.NewMemory(), coded{40, c.values})
		for range 2 {
			r := testkit.Get(h.Report(t.Context(), plan, []byte("shared")))(t)
			if got := r.Verdicts(); !slices.Equal(got, c.want) {
				t.Errorf("%v: the report warns of %q, not %q", c.values, got, c.want)
			}
			if r.Metrics["bytes"] != 6 {
				t.Errorf("%v: the method's own report is gone", c.values)
			}
			h.Summary, _ = dataset.Describe(t.Context(), h.Data)
		}
	}
}

// wide has many features, each with a code.
type wide int

func (w wide) Schema() dataset.Schema {
	v := dataset.View{Name: "v"}
	for j := range int(w) {
		v.Columns = append(v.Columns, dataset.Column{Name: fmt.Sprintf("x%02d", j)})
	}
	return dataset.Schema{Views: []dataset.View{v}}
}

func (w wide) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		for row, err := range (enginetest.ToyRows(40)).Rows(ctx) {
			x := row.Views[0][0]
			if x == 7 {
				x = -9
			}
			if row.Views[0] = slices.Repeat([]float64{x}, int(w)); !yield(row, err) {
				return
			}
		}
	}
}

// A report opens with a few warnings of a site's rows, and says all.
func TestManyDoubtsInAReport(t *testing.T) {
	r := testkit.Get(hostOf(sitestore.NewMemory(), wide(25)).Report(t.Context(), plan, nil))(t)
	says := r.Verdicts()
	if len(says) != 11 || says[10] != "There are 15 more such notes on this site's rows" {
		t.Errorf("it opens with %q", says)
	}
	if rest := r.Sections[0].Items[10].Note.Text; !strings.Contains(rest, "feature x10: ") ||
		!strings.Contains(rest, "feature x24: ") {
		t.Errorf("the others are %q", rest)
	}
}
