package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"parley/engine"
	"parley/method"
)

// watch shows rounds that each bring a study on by step, the last two of them
// without progress, and returns the lines.
func watch(rounds, step int) []string {
	var out bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetErr(&out)
	show := newProgress(cmd)
	for i := 1; i <= rounds+2; i++ {
		round := &engine.Round{Round: i, Sites: []engine.Exchange{{Kind: "update", Up: 7}}, Info: method.Info{}}
		show.event(engine.Event{Progress: min(i, rounds) * step, Of: rounds * step, Round: round})
	}
	show.close()
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

func TestShortStudiesHaveALineForEachRound(t *testing.T) {
	for _, rounds := range []int{1, 100, manySteps} {
		lines := watch(rounds, 1)
		if len(lines) != rounds+2 || lines[0] != "round 1: update; 1 site sent 7 bytes" {
			t.Errorf("%d rounds: %d lines, the first %q", rounds, len(lines), lines[0])
		}
	}
}

func TestLongStudiesHaveAboutAHundredLines(t *testing.T) {
	for _, rounds := range []int{manySteps + 1, 1000, 9999, 10_000} {
		lines := watch(rounds, 1)
		if n := len(lines); n < fewLines/2 || n > fewLines+3 {
			t.Errorf("%d rounds: %d lines", rounds, n)
		}
		said := fmt.Sprintf("%d steps: a line for about %d of them; rounds.jsonl will have every round", rounds, fewLines)
		if lines[0] != said {
			t.Errorf("%d rounds: the first line is %q, want %q", rounds, lines[0], said)
		}
		for i, round := range map[int]int{1: 1, len(lines) - 1: rounds} {
			if want := fmt.Sprintf("round %d: ", round); !strings.HasPrefix(lines[i], want) {
				t.Errorf("%d rounds: line %d is %q, want %q", rounds, i, lines[i], want)
			}
		}
	}
	// Few rounds of many steps each.
	if lines := watch(50, 1000); len(lines) != 51 {
		t.Errorf("50 rounds of 1000 steps: %d lines", len(lines))
	}
}
