package main

import "testing"

// What passes at the sockets is bounded by the bodies.
func TestBytesAtTheSocket(t *testing.T) {
	r, err := measureNetwork(t.Context(), networkOptions{sites: 20, rounds: 5, features: 88, dir: t.TempDir()}, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r)
	if r.socket > r.bound() {
		t.Errorf("%.0f bytes for each site and round, above %.0f", r.socket, r.bound())
	}
	if r.rss > 256<<20 {
		t.Errorf("the coordinator needed %d MB", r.rss>>20)
	}
}
