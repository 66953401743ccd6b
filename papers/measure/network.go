package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
)

// runNetwork measures a coordinator and many sites over real sockets: how long
// a round takes, how much memory the coordinator needs, and how many bytes pass at
// the sites' sockets for those of the bodies.
//
//	go run -C papers ./measure network            # 200 sites, 20 rounds
//	go run -C papers ./measure network -sites 20 -rounds 5 -features 60
//	go run -C papers ./measure network -sites 1000 -rounds 10 -idle 1m
//	go run -C papers ./measure network -sites 20 -rounds 200 -against strangers   # or long, short
//
// The coordinator is a process of its own: parley coordinator serve, built from the
// source here. The sites are daemons in this process, each with its folder, store
// and connection, through a proxy that counts.
func runNetwork(ctx context.Context, args []string) error {
	o := networkOptions{}
	set := flag.NewFlagSet("network", flag.ContinueOnError)
	set.IntVar(&o.sites, "sites", 200, "how many sites")
	set.IntVar(&o.rounds, "rounds", 20, "how many rounds")
	set.IntVar(&o.features, "features", 88, "features of the data: what a body takes grows with them")
	set.DurationVar(&o.idle, "idle", 0, "for how long to measure what an idle coordinator needs, after the study")
	set.StringVar(&o.dir, "dir", "", "where to make the folders (default a temporary one, removed at the end)")
	set.StringVar(&o.against, "against", "", "measure a study while somebody disturbs it, beside a quiet one: "+
		"strangers (connections that say nothing), or a member that puts values, long or short")
	if err := parse(set, args, func() error {
		if o.sites < 1 || o.rounds < 2 || o.features < 1 {
			return fmt.Errorf("want at least a site, a feature and two rounds")
		}
		if o.against != "" && against[o.against] == nil {
			return fmt.Errorf("nobody is called %q", o.against)
		}
		return nil
	}); err != nil {
		return err
	}
	debug.SetGCPercent(400) // the sites' memory is that of many machines
	say := func(format string, a ...any) { fmt.Fprintf(os.Stderr, format+"\n", a...) }
	if o.against != "" {
		return disturbed(ctx, o, say)
	}
	r, err := measureNetwork(ctx, o, say)
	if err != nil {
		return err
	}
	fmt.Println(r)
	return nil
}
