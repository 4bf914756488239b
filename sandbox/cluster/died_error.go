//go:build unix

package cluster

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"
)

// DiedError reports that a component died unexpectedly.
type DiedError struct {
	Component string // its name, such as kube-apiserver-2
	Reason    error  // how the process ended
	// Disk is the error of a full disk under the cluster's folder. The log may then lack the line with the cause.
	Disk     error
	LogCause string // the first line of its log with a fatal error, or empty
	LogTail  string // the last lines of its log
	LogFile  string
}

func (e *DiedError) Error() string {
	disk := ""
	if e.Disk != nil {
		disk = fmt.Sprintf("; the disk is full (%v)", e.Disk)
	}
	return fmt.Sprintf("%s died (%v)%s; %s", e.Component, e.Reason, disk, logExcerpt{e.LogCause, e.LogTail})
}

func (e *DiedError) Unwrap() error { return e.Reason }

func (e *DiedError) addressInUse() bool {
	const text = "address already in use"
	return strings.Contains(e.LogCause, text) || strings.Contains(e.LogTail, text)
}

var unknownGate = regexp.MustCompile(`unrecognized feature gate: (\w+)`)

// unknownGate returns the feature gate unknown to the component, or "".
func (e *DiedError) unknownGate() string {
	if m := unknownGate.FindStringSubmatch(e.LogTail); m != nil {
		return m[1]
	}
	return ""
}

// minFreeSpace is the free space below which the disk counts as full.
const minFreeSpace = 1 << 20

// checkDisk returns an error if the disk of folder dir, or the user's quota on it, is full. It writes to an unlinked file.
func checkDisk(dir string) error {
	file, err := os.CreateTemp(dir, "anykind-space-")
	if err != nil {
		return diskFullError(err)
	}
	_ = os.Remove(file.Name())
	_, err = file.Write(make([]byte, minFreeSpace))
	return diskFullError(errors.Join(err, file.Close()))
}

// diskFullError returns err if it reports a full disk.
func diskFullError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return err
	}
	return nil
}

// Limits of a log excerpt in an error, and of the search for the cause.
const (
	tailLines     = 15
	maxLineLength = 600
	maxLogSearch  = 8 << 20
)

// fatalLine matches the last words of components: a full disk, Go's panics and fatal errors, klog's F lines, "command failed" of
// Kubernetes' commands, and JSON logs above level error. Other E lines of klog do not count: every API server writes some during
// its start.
const fatalLine = `no space left on device|disk quota exceeded` +
	`|^panic: |^fatal error: ` +
	`|^F\d{4} |^E\d{4} .*"command failed"` +
	`|^\{"level":"(dpanic|panic|fatal)"`

// logExcerpt is the part of a log in an error.
type logExcerpt struct {
	cause string // first line matching fatalLine, or empty
	tail  string // the last lines, or the reason for their absence
}

// readLogExcerpt reads the log at path from offset on: the beginning of the process's output.
func readLogExcerpt(path string, offset int64) logExcerpt {
	file, err := os.Open(path)
	if err != nil {
		return logExcerpt{tail: fmt.Sprintf("(no log: %v)", err)}
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil {
		offset = max(offset, info.Size()-maxLogSearch)
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return logExcerpt{tail: fmt.Sprintf("(no log: %v)", err)}
	}
	return excerpt(file)
}

func excerpt(log io.Reader) logExcerpt {
	var (
		e     logExcerpt
		last  []string
		fatal = regexp.MustCompile(fatalLine)
	)
	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadBytes('\n')
		line = bytes.TrimSpace(line)
		if len(line) > 0 {
			if e.cause == "" && fatal.Match(line) {
				e.cause = string(line)
			}
			last = append(last, string(line))
			last = last[max(0, len(last)-tailLines):]
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			last = append(last, fmt.Sprintf("(the log ends here: %v)", err))
			break
		}
	}
	if e.tail = strings.Join(last, "\n"); e.tail == "" {
		e.tail = "(it wrote nothing)"
	}
	return e
}

// String returns the lines indented, with long lines shortened.
func (e logExcerpt) String() string {
	text := "the last lines of its log:\n" + indented(e.tail)
	if e.cause == "" || strings.HasPrefix(e.tail, e.cause) {
		return text
	}
	return "the cause by its log:\n" + indented(e.cause) + "\n" + text
}

func indented(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if len(line) > maxLineLength {
			line = strings.ToValidUTF8(line[:maxLineLength], "") + "…"
		}
		lines = append(lines, "    "+line)
	}
	return strings.Join(lines, "\n")
}
