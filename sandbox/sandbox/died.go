//go:build unix

package sandbox

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// DiedError says that a component ended without being asked to.
type DiedError struct {
	Component string // its name, such as kube-apiserver-2
	Reason    error  // how the process ended
	LogTail   string // the last lines it wrote
	LogFile   string
}

func (e *DiedError) Error() string {
	return fmt.Sprintf("%s died (%v); the last lines of its log:\n%s", e.Component, e.Reason, indent(e.LogTail))
}

func (e *DiedError) Unwrap() error { return e.Reason }

func (e *DiedError) addressInUse() bool { return strings.Contains(e.LogTail, "address already in use") }

var unknownGate = regexp.MustCompile(`unrecognized feature gate: (\w+)`)

// unknownGate is the feature gate the component ended over, if it did.
func (e *DiedError) unknownGate() string {
	if m := unknownGate.FindStringSubmatch(e.LogTail); m != nil {
		return m[1]
	}
	return ""
}

// How much of a log an error shows.
const (
	tailLines = 15
	tailBytes = 16 << 10
)

// logTail returns the last lines of a log, or a note why there are none.
func logTail(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > tailBytes {
		_, _ = file.Seek(-tailBytes, io.SeekEnd)
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	}
	if tail := string(bytes.Join(lines, []byte("\n"))); tail != "" {
		return tail
	}
	return "(it wrote nothing)"
}

func indent(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }
