package method_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/method"
	"parley/privacy"
)

type message struct {
	Number int `cbor:"number"`
}

func TestAskingReachesWhoIsStaying(t *testing.T) {
	sites := []string{"a", "b", "c"}
	left := testkit.Get(method.Leave(sites, nil, "b"))(t)
	staying := method.Staying(sites, left)
	if !slices.Equal(staying, []string{"a", "c"}) || !slices.Equal(sites, []string{"a", "b", "c"}) {
		t.Fatalf("%v stay of %v", staying, sites)
	}
	tasks, err := method.Ask("count", staying, func(site string) (any, error) { return message{int(site[0])}, nil })
	if err != nil || len(tasks) != 2 {
		t.Fatalf("%v, %v", tasks, err)
	}
	for i, task := range tasks {
		var m message
		if err := method.OpenTask(task, &m); err != nil || task.Site != staying[i] || task.Kind != "count" ||
			task.Optional || m.Number != int(task.Site[0]) {
			t.Errorf("%+v holds %+v, %v", task, m, err)
		}
	}
	for _, task := range method.Optional(tasks) {
		if !task.Optional {
			t.Errorf("%+v is not optional", task)
		}
	}
	if tasks, err := method.Ask("count", nil, nil); tasks != nil || err != nil {
		t.Errorf("%v, %v of nobody", tasks, err)
	}
	lost := errors.New("lost")
	if _, err := method.Ask("count", sites, func(string) (any, error) { return nil, lost }); !errors.Is(err, lost) {
		t.Error(err)
	}
}

func TestAnswersGoThereAndBack(t *testing.T) {
	task := method.Task{Site: "a", Kind: "count"}
	a, err := method.AnswerTask(task, message{7}, []byte{1})
	if err != nil || !bytes.Equal(a.State, []byte{1}) {
		t.Fatalf("%+v, %v", a, err)
	}
	in := method.Contribution{Site: "a", Kind: "count", Body: a.Body}
	var m message
	if err := method.DecodeAnswer(in, &m); err != nil || m.Number != 7 {
		t.Errorf("%+v, %v", m, err)
	}
	if err := method.Expect(in, []string{"a"}, "count"); err != nil {
		t.Error(err)
	}
	// Where noised sums are all of it there is no body.
	if a, err = method.AnswerTask(task, nil, []byte{2}); err != nil || a.Body != nil ||
		!bytes.Equal(a.State, []byte{2}) {
		t.Errorf("%+v, %v", a, err)
	}
	sum := new(privacy.Noised)
	in = method.Contribution{Site: "a", Kind: "count", Sums: map[string][]*privacy.Noised{"rows": {sum}}}
	if got, err := method.OnlySum(in, "rows"); got != sum || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestWhatIsNotExpectedIsRefused(t *testing.T) {
	in := method.Contribution{Site: "a", Kind: "count", Body: []byte("no CBOR")}
	_, errLeave := method.Leave([]string{"b"}, nil, "a")
	_, errAsk := method.Ask("count", []string{"a"}, func(string) (any, error) { return func() {}, nil })
	_, errAnswer := method.AnswerTask(method.Task{Kind: "count"}, func() {}, nil)
	_, errBody := method.OnlySum(in, "rows")
	_, errNone := method.OnlySum(method.Contribution{}, "rows")
	for want, err := range map[string]error{
		`"a" is not a site of this study`:                     method.Expect(in, []string{"b"}, "count"),
		`"a" is not a site of`:                                errLeave,
		`answer to "count" while the study waits for "weigh"`: method.Expect(in, []string{"a"}, "weigh"),
		`decoding the answer to "count": `:                    method.DecodeAnswer(in, new(message)),
		`decoding task "count": `: method.OpenTask(method.Task{Kind: "count",
			Body: in.Body}, new(message)),
		`encoding task "count": `:                            errAsk,
		`encoding the answer to "count": `:                   errAnswer,
		`answer to "count" has a body beside its noised sum`: errBody,
		`0 sums "rows", where one was asked for`:             errNone,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestOnlySitesAreMembers(t *testing.T) {
	sites := []string{"a", "b"}
	if err := method.Member(sites, "b"); err != nil {
		t.Error(err)
	}
	for _, site := range []string{"", "c", "A"} {
		if err := method.Member(sites, site); err == nil || !strings.Contains(err.Error(), "not a site of this study") {
			t.Errorf("site %q: %v", site, err)
		}
	}
}
