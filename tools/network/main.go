// Command network measures a coordinator and many sites over real sockets: how long
// a round takes, how much memory the coordinator needs, and how many bytes pass at
// the sites' sockets for those of the bodies.
//
//	go run ./tools/network            # 200 sites, 20 rounds
//	go run ./tools/network --sites 20 --rounds 5 --features 60
//
// The coordinator is a process of its own: parley coordinator serve, built from the
// source here. The sites are daemons in this process, each with its folder, store
// and connection, through a proxy that counts.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	o := options{}
	flag.IntVar(&o.sites, "sites", 200, "how many sites")
	flag.IntVar(&o.rounds, "rounds", 20, "how many rounds")
	flag.IntVar(&o.features, "features", 88, "features of the data: what a body takes grows with them")
	flag.StringVar(&o.dir, "dir", "", "where to make the folders (default a temporary one, removed at the end)")
	flag.StringVar(&o.profile, "profile", "", "write CPU and heap profiles of the sites' process to this folder")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r, err := measure(ctx, o, func(format string, a ...any) { fmt.Fprintf(os.Stderr, format+"\n", a...) })
	if err != nil {
		fmt.Fprintln(os.Stderr, "network:", err)
		os.Exit(1)
	}
	fmt.Println(r)
}
