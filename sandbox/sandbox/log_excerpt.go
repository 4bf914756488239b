//go:build unix

package sandbox

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// How much of a log an error shows, and how much of it is searched for the cause.
const (
	tailLines     = 15
	maxLineLength = 600
	maxLogSearch  = 8 << 20
)

// fatalLine matches the lines in which components say why they end: a full disk, Go's
// panics and fatal errors, klog's F lines and the "command failed" of Kubernetes'
// commands, and the levels of JSON logs above error. klog's other E lines do not
// count: every healthy API server writes some while it starts.
const fatalLine = `no space left on device|disk quota exceeded` +
	`|^panic: |^fatal error: ` +
	`|^F\d{4} |^E\d{4} .*"command failed"` +
	`|^\{"level":"(dpanic|panic|fatal)"`

// logExcerpt is what an error shows of a log.
type logExcerpt struct {
	cause string // the first line that matches fatalLine, or empty
	tail  string // the last lines, or a note why there are none
}

// readLogExcerpt reads the log at path from offset on, where the process that it is
// about began to write.
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

// String returns the lines as errors show them: indented, and long ones shortened.
func (e logExcerpt) String() string {
	text := "the last lines of its log:\n" + shown(e.tail)
	if e.cause == "" || strings.HasPrefix(e.tail, e.cause) {
		return text
	}
	return "the cause by its log:\n" + shown(e.cause) + "\n" + text
}

func shown(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if len(line) > maxLineLength {
			line = strings.ToValidUTF8(line[:maxLineLength], "") + "…"
		}
		lines = append(lines, "    "+line)
	}
	return strings.Join(lines, "\n")
}
