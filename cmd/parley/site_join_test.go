package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAsk(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "Yes \n": true, "\n": false, "n\n": false, "": false, "yesterday\n": false} {
		if got, err := ask(t.Context(), strings.NewReader(answer), io.Discard, "Well?"); got != want || err != nil {
			t.Errorf("%q is taken for %v (%v)", answer, got, err)
		}
	}
}

// A person who is asked can leave with one Ctrl-C, and has decided nothing.
func TestAskIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	silent, w := io.Pipe()
	defer w.Close()
	if yes, err := ask(ctx, silent, io.Discard, "Well?"); yes || !errors.Is(err, context.Canceled) {
		t.Errorf("it is taken for %v (%v)", yes, err)
	}
}
