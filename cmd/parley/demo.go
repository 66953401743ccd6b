package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"parley/dataset"
	"parley/engine/local"
	"parley/federation/coordinator"
	"parley/internal/files"
	"parley/study"
)

func demoCommand() *cobra.Command {
	var dir, listen, websocket string
	var noServe bool
	var flags daemonFlags
	cmd := &cobra.Command{
		Use:   "demo PLAN",
		Short: "Try a study over a network on one machine",
		Long:  "Make a coordinator's folder and one for each site on this machine, and serve as the coordinator.",
		RunE: func(cmd *cobra.Command, a []string) error {
			plan, err := study.Load(a[0], methods)
			if err != nil {
				return err
			}
			f, err := demo(cmd, dir, plan, listen, websocket)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			fmt.Fprintln(out, "In another terminal, for each of the sites, join and then serve:")
			for _, site := range plan.Sites {
				fmt.Fprintf(out, "  parley site join %s\n", filepath.Join(dir, site+".invitation"))
			}
			if plan.Privacy.Secure() {
				fmt.Fprintf(out, "\nOnce all of them have joined, since the plan names their keys:\n  parley coordinator submit %s %s\n", f.Path, a[0])
			}
			if noServe {
				fmt.Fprintf(out, "\nBefore that, here:\n  parley coordinator serve %s\n", f.Path)
				return nil
			}
			fmt.Fprintln(out)
			return serveCoordinator(cmd, f, flags)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "demo", "folder to make everything in")
	cmd.Flags().StringVar(&listen, "listen", "", "where the broker listens (default 127.0.0.1:4222, or another free port)")
	cmd.Flags().StringVar(&websocket, "websocket", "", "where it listens for WebSocket (default 127.0.0.1:8443, or another free port)")
	cmd.Flags().BoolVar(&noServe, "no-serve", false, "only make the folders, and do not serve")
	flags.add(cmd)
	return cmd
}

// demo makes the folders, or opens those that an earlier call has made.
func demo(cmd *cobra.Command, dir string, plan *study.Plan, listen, websocket string) (*coordinator.Folder, error) {
	path := filepath.Join(dir, "coordinator")
	f, err := coordinator.Open(path, methods)
	if err == nil {
		if _, fresh, err := f.Submit(plan); err != nil || !fresh {
			return f, err
		}
		fmt.Fprintln(cmd.OutOrStdout(), "This folder has sites already; the plan was submitted to them.")
		return f, nil
	}
	if _, missing := os.Stat(filepath.Join(path, "coordinator.key")); !errors.Is(missing, fs.ErrNotExist) {
		return nil, err
	}
	binding, err := local.Bind(cmd.Context(), plan, nil)
	if err != nil {
		return nil, err
	}
	for _, site := range plan.Sites {
		if err := (&output{path: filepath.Join(dir, site, "policy.yaml"), flag: "--dir", fixed: true}).check(); err != nil {
			return nil, err
		}
	}
	for _, site := range plan.Sites {
		if err := dataset.Write(cmd.Context(), filepath.Join(dir, site, "data"), binding.Data[site]); err != nil {
			return nil, fmt.Errorf("site %s: %w", site, err)
		}
		text := fmt.Appendf(nil, demoPolicy, site)
		if plan.Local.Policy != "" {
			if text, err = os.ReadFile(plan.Local.Policy); err != nil {
				return nil, err
			}
		}
		if err := files.Write(filepath.Join(dir, site, "policy.yaml"), text); err != nil {
			return nil, err
		}
	}
	c := coordinator.Config{}
	for _, a := range []struct {
		to           *string
		given, first string
	}{{&c.Listen, listen, "127.0.0.1:4222"}, {&c.WebSocket, websocket, "127.0.0.1:8443"}} {
		if *a.to = a.given; a.given == "" {
			if *a.to, err = freeAddress(a.first); err != nil {
				return nil, err
			}
		}
	}
	if c.Hosts, err = defaultHosts(c.Listen, c.WebSocket); err != nil {
		return nil, err
	}
	if f, err = coordinator.Init(path, methods, c, coordinator.Account{}); err != nil {
		return nil, err
	}
	if !plan.Privacy.Secure() { // which names the keys of sites that have joined
		if _, _, err := f.Submit(plan); err != nil {
			return nil, err
		}
	}
	for _, site := range plan.Sites {
		if err := writeInvitation(f, site, filepath.Join(dir, site+".invitation"), 7*24*time.Hour, false); err != nil {
			return nil, err
		}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s holds a coordinator and %d sites: plan %s, its data split among them, an invitation for each.\n", dir, len(plan.Sites), plan.Name)
	return f, nil
}

// demoPolicy lets a demonstration run any plan: it protects nobody.
const demoPolicy = `# The policy of a site of a demonstration: it allows what simulations do, and
# protects nobody. For a policy to begin your own with: parley site policy init
policy: 1
site: %s
protection: optional
max_delta: 1
per_release: true
`

// freeAddress is the first, if nobody listens there, or another port of its host.
func freeAddress(first string) (string, error) {
	listener, err := net.Listen("tcp", first)
	if err != nil {
		host, _, _ := net.SplitHostPort(first)
		if listener, err = net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
			return "", err
		}
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}
