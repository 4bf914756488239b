package progress

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// screen is a terminal: it understands the codes that a Display writes.
type screen struct {
	mu     sync.Mutex
	rows   []string
	row    int
	writes int
}

var code = regexp.MustCompile(`^\x1b\[(\d*)([AJK])`)

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	column := 0
	for rest := string(p); rest != ""; {
		if m := code.FindStringSubmatch(rest); m != nil {
			s.control(m[2], m[1], column)
			rest = rest[len(m[0]):]
			continue
		}
		r := []rune(rest)[0]
		rest = rest[len(string(r)):]
		switch r {
		case '\r':
			column = 0
		case '\n':
			s.row++
			s.line()
		default:
			line := []rune(s.line())
			for len(line) <= column {
				line = append(line, ' ')
			}
			line[column] = r
			s.rows[s.row] = string(line)
			column++
		}
	}
	return len(p), nil
}

func (s *screen) control(letter, count string, column int) {
	switch letter {
	case "A":
		var n int
		_, _ = fmt.Sscan(count, &n)
		s.row -= n
	case "J":
		s.line()
		s.rows = s.rows[:s.row+1]
		s.rows[s.row] = string([]rune(s.rows[s.row])[:column])
	case "K":
		line := []rune(s.line())
		s.rows[s.row] = string(line[:min(column, len(line))])
	}
}

func (s *screen) line() string {
	for len(s.rows) <= s.row {
		s.rows = append(s.rows, "")
	}
	return s.rows[s.row]
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.TrimRight(strings.Join(s.rows, "\n"), "\n")
}

// newOn returns a display on a terminal of 40 columns and 10 lines.
func newOn(s *screen) *Display {
	d := New(s)
	d.size = func() (int, int, bool) { return 40, 10, true }
	return d
}

func TestDisplay_RedrawsTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &screen{}
		d := newOn(s)
		d.Update("a", "first\nline")
		d.Update("b", "%d of %d", 1, 3)
		assert.Empty(t, s.text(), "not drawn at once")
		time.Sleep(200 * time.Millisecond)
		assert.Equal(t, "first line\n1 of 3", s.text())
		d.Update("b", "2 of 3")
		time.Sleep(200 * time.Millisecond)
		assert.Equal(t, "first line\n2 of 3", s.text())
		_, _ = fmt.Fprintln(d.Above(s), "created")
		time.Sleep(200 * time.Millisecond)
		assert.Equal(t, "created\nfirst line\n2 of 3", s.text())
		d.Remove("a")
		time.Sleep(2 * time.Second)
		assert.Equal(t, "created\n2 of 3 (2s)", s.text())
		d.Close()
		assert.Equal(t, "created", s.text())
		d.Update("a", "too late")
		assert.Equal(t, "created", s.text())
	})
}

func TestDisplay_LimitsRedraws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &screen{}
		d := newOn(s)
		for i := range 1000 {
			d.Update("a", "%d of 1000", i)
			time.Sleep(time.Millisecond)
		}
		d.Close()
		assert.LessOrEqual(t, s.writes, 12) // Close has ended the goroutine that writes
		assert.Greater(t, s.writes, 5)
	})
}

func TestDisplay_FitsTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &screen{}
		var width atomic.Int64
		width.Store(20)
		d := New(s)
		d.size = func() (int, int, bool) { return int(width.Load()), 5, true }
		for i := range 5 {
			d.Update(fmt.Sprint(i), "task %d is waiting for something", i)
		}
		time.Sleep(200 * time.Millisecond)
		assert.Equal(t, "task 0 is waiting …\ntask 1 is waiting …\n… and 3 more", s.text())
		width.Store(10)
		s.mu.Lock() // the narrower terminal wraps the lines
		s.rows = []string{"task 0 is ", "waiting …", "task 1 is ", "waiting …", "… and 3 mo", "re", ""}
		s.row = 6
		s.mu.Unlock()
		time.Sleep(2 * time.Second)
		assert.Equal(t, "task 0 i…\ntask 1 i…\n… and 3 …", s.text())
		d.Close()
		assert.Empty(t, s.text())
	})
}

func TestDisplay_PlainLinesFromTimeToTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		d := New(&out)
		for i := range 40 {
			d.Update("a", "%d changes", i)
			time.Sleep(700 * time.Millisecond)
		}
		d.Update("b", "over at once")
		d.Remove("b")
		d.Close()
		assert.Equal(t, "14 changes\n28 changes\n", out.String())
	})
}

func TestCut_Columns(t *testing.T) {
	for _, c := range []struct {
		text string
		room int
		want string
	}{
		{"short", 5, "short"},
		{"longer", 5, "long…"},
		{"日本語", 6, "日本語"},
		{"日本語", 5, "日本…"},
		{"日本語", 4, "日…"},
		{"e\u0301e\u0301", 2, "e\u0301e\u0301"},
		{"any", 0, ""},
		{"any", 1, "…"},
	} {
		got := cut(c.text, c.room)
		assert.Equal(t, c.want, got, "%q in %d", c.text, c.room)
		assert.LessOrEqual(t, columns(got), c.room)
	}
}
