package nats

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"parley/engine/wire"
	"parley/internal/testkit"
)

func init() { pingEvery = 10 * time.Second }

// A line on which bytes vanish, and which nobody closes, is noticed at both ends within five
// pings, while the broker does not give up a line that is only quiet.
func TestHalfOpenLineIsNoticed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var vanish atomic.Bool
	through := func(address string) string {
		l := testkit.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		t.Cleanup(func() { l.Close() })
		pump := func(to, from net.Conn) {
			data := make([]byte, 32<<10)
			for {
				n, err := from.Read(data)
				if err != nil {
					return
				}
				if !vanish.Load() {
					to.Write(data[:n])
				}
			}
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				up, err := net.Dial("tcp", address)
				if err != nil || vanish.Load() {
					c.Close()
					continue
				}
				t.Cleanup(func() { c.Close(); up.Close() })
				go pump(up, c)
				go pump(c, up)
			}
		}()
		return l.Addr().String()
	}
	put(t, w.connect(w.coordinatorOptions()), wire.TaskKey(study, "north"), "task", 0)
	quiet := testkit.Get(Connect(w.siteOptions("south")))(t)
	defer quiet.Close()
	var broken []*Conn
	for _, address := range []string{"tls://" + through(w.server.Addr()),
		"wss://" + through(w.server.webSocketAddr())} {
		o := w.siteOptions("north")
		o.URLs = []string{address}
		c := testkit.Get(Connect(o))(t)
		defer c.Close()
		holds(t, c, wire.TaskKey(study, "north"), "task")
		broken = append(broken, c)
	}
	eventually(t, "all are connected", func() bool { return quiet.Connected() && w.server.running.NumClients() >= 4 })
	quiet.mu.Lock()
	first := quiet.nc
	quiet.mu.Unlock()
	all := w.server.running.NumClients()
	vanish.Store(true)
	began := time.Now()
	eventually(t, "both ends notice", func() bool {
		return !broken[0].Connected() && !broken[1].Connected() && w.server.running.NumClients() == all-2
	})
	if took := time.Since(began); took < pingEvery || took > 5*pingEvery {
		t.Errorf("lines are given up after %s", took)
	}
	quiet.mu.Lock()
	defer quiet.mu.Unlock()
	if quiet.nc != first {
		t.Error("a line that was quiet has been given up")
	}
}
