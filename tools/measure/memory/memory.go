// Package memory tells how much memory a process has needed.
package memory

import (
	"fmt"
	"os"
	"strings"
)

// Peak is the most memory in bytes that the process of this number has held so far, shared
// pages counted; 0 where the system does not tell.
func Peak(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, text, _ := strings.Cut(string(data), "VmHWM:")
	var kb int64
	fmt.Sscan(text, &kb)
	return kb << 10
}
