package trials_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"parley/internal/must"
	"parley/judge/trials"
)

type number int

func (n number) String() string { return fmt.Sprintf("trial %d", int(n)) }
func (n number) Key() string    { return fmt.Sprintf("n-%d", int(n)) }

type settings struct{ Base int }

func (s *settings) Differs(old *settings) string {
	if s.Base == old.Base {
		return ""
	}
	return fmt.Sprintf("base %d, not %d", old.Base, s.Base)
}

type outcome struct{ Square int }

func open(t *testing.T, dir string) *trials.Store[outcome] {
	t.Helper()
	return must.Get(trials.Open[outcome](dir, "outcomes", "table of squares", &settings{10}))(t)
}

// However often and wherever the work is stopped, every trial is computed once.
func TestWorkGoesOnWhereItWas(t *testing.T) {
	const n = 20
	var all []number
	for i := range n {
		all = append(all, number(i))
	}
	dir := filepath.Join(t.TempDir(), "work")
	var computed [n]atomic.Int32
	stop := errors.New("enough")
	for round := 0; ; round++ {
		var left atomic.Int32
		left.Store(7)
		first := true
		err := trials.Run(context.Background(), all, open(t, dir), 1+round%3, func(_ context.Context, x number) (*outcome, error) {
			if left.Add(-1) < 0 {
				return nil, stop
			}
			computed[x].Add(1)
			return &outcome{int(x) * int(x)}, nil
		}, func(p trials.Progress) {
			if first && (p.Done != p.Stored || p.Of != n || p.Stored != 7*round) {
				t.Errorf("round %d begins with %+v", round, p)
			}
			first = false
		})
		if err == nil {
			if round != 2 { // 7, 14 and 20
				t.Errorf("done in round %d", round)
			}
			break
		}
		if !errors.Is(err, stop) || !strings.HasPrefix(err.Error(), "trial ") {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	kept := open(t, dir)
	for i := range computed {
		r, err := kept.Get(number(i).Key())
		if err != nil || r.Square != i*i || computed[i].Load() != 1 {
			t.Errorf("trial %d: %+v, %v, computed %d times", i, r, err, computed[i].Load())
		}
	}
}

func TestPeopleStopTheWork(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	done := 0
	err := trials.Run(ctx, []number{1, 2, 3}, open(t, filepath.Join(t.TempDir(), "w")), 1, func(context.Context, number) (*outcome, error) {
		done++
		cancel()
		return &outcome{}, nil
	}, nil)
	if !errors.Is(err, context.Canceled) || done != 1 {
		t.Errorf("got %v after %d", err, done)
	}
}

func TestWhatIsNotOursIsRefused(t *testing.T) {
	dir := t.TempDir()
	work := filepath.Join(dir, "work")
	open(t, work)
	write := func(path, text string) {
		t.Helper()
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	}
	write(filepath.Join(dir, "other", "letter.txt"), "Dear")
	write(filepath.Join(dir, "broken", "settings.json"), "{")
	for _, c := range []struct {
		dir, want string
		base      int
	}{
		{work, "holds another table of squares: base 10, not 11\n  hint: choose another directory", 11},
		{filepath.Join(dir, "other"), "not empty and holds no table of squares", 10},
		{filepath.Join(dir, "broken"), "these are no settings of this kind", 10},
	} {
		if _, err := trials.Open[outcome](c.dir, "outcomes", "table of squares", &settings{c.base}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", c.dir, err)
		}
	}
	write(filepath.Join(work, "outcomes", "n-1.json"), "{")
	err := trials.Run(context.Background(), []number{1}, open(t, work), 1, func(context.Context, number) (*outcome, error) { return &outcome{}, nil }, nil)
	if err == nil || !strings.Contains(err.Error(), "remove the file, and it is computed again") {
		t.Errorf("a broken outcome: got %v", err)
	}
}
