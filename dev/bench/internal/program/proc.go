//go:build unix

package program

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ProcValue returns a number in a file of Linux' /proc, such as "VmRSS:" of /proc/self/status in kB.
func ProcValue(path, name string) (float64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	_, after, found := strings.Cut(string(text), name)
	fields := strings.Fields(after)
	if !found || len(fields) == 0 {
		return 0, fmt.Errorf("%s has no %s", path, name)
	}
	return strconv.ParseFloat(fields[0], 64)
}
