// Package progress shows the progress of a waiting command: on a terminal in redrawn lines, elsewhere in occasional plain lines.
//
//	display := progress.New(os.Stderr)
//	defer display.Close()
//	display.Update("web", "deployment web: %d of %d replicas are available", have, want)
//	…
//	display.Remove("web")
//
// On a terminal, the last lines are the lines of all keys, in the order of their first updates. They are cut at the terminal's
// width, redrawn at most every 100 milliseconds, and removed by Close. Further output to the same terminal must be written to
// Above. Elsewhere, the latest text of a key is written every ten seconds: a long wait is logged in a few lines, a
// short wait not at all.
package progress

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anykind/anykind/cli/internal/printable"
)

const (
	// interval is the minimum interval between redraws of a terminal.
	interval = 100 * time.Millisecond
	// plainInterval is the interval before each plain line of a key.
	plainInterval = 10 * time.Second
	// maxLines is the maximum number of status lines on a terminal, also limited by its height. The last line counts the hidden
	// lines.
	maxLines        = 8
	elapsedInterval = time.Second
)

// Display shows the status of several tasks. Each task has a key. It is safe for concurrent use.
type Display struct {
	out io.Writer
	// size returns the width and height of a terminal, or false without a terminal.
	size func() (width, height int, isTerminal bool)

	mu       sync.Mutex
	tasks    []*task
	drawn    []string  // the lines on the terminal
	drawnAt  time.Time // of the last redraw
	isClosed bool
	restore  func()        // the console's mode
	stop     chan struct{} // ends the redrawing goroutine, nil without a goroutine
	stopped  chan struct{}
}

// task is the status of a key.
type task struct {
	key, text string
	since     time.Time
	printedAt time.Time // as a plain line
	printed   string
}

// New returns a display that writes to out. Nothing is written before the first Update.
func New(out io.Writer) *Display {
	out = printable.Unwrap(out)
	return &Display{out: out, size: sizeOf(out)}
}

// IsTerminal reports whether the lines are redrawn.
func (d *Display) IsTerminal() bool {
	_, _, isTerminal := d.size()
	return isTerminal
}

// Update sets the text of a key: a single line. Control characters are replaced.
func (d *Display) Update(key, format string, args ...any) {
	text := singleLine(fmt.Sprintf(format, args...))
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isClosed {
		return
	}
	now := time.Now()
	index := d.index(key)
	if index < 0 {
		index = len(d.tasks)
		d.tasks = append(d.tasks, &task{key: key, since: now, printedAt: now})
	}
	d.tasks[index].text = text
	d.start()
	d.refresh(now)
}

// Remove removes the line of a key.
func (d *Display) Remove(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if index := d.index(key); index >= 0 {
		d.tasks = slices.Delete(d.tasks, index, index+1)
		if len(d.tasks) == 0 {
			d.erase()
		}
	}
}

// Above returns a writer of text above the lines. w, such as standard output, writes to the same terminal. Each write should end
// with a newline.
func (d *Display) Above(w io.Writer) io.Writer { return &aboveWriter{display: d, w: w} }

// Close removes all lines, restores the console and stops the display. Later updates have no effect.
func (d *Display) Close() {
	d.mu.Lock()
	d.isClosed = true
	d.erase()
	d.tasks = nil
	stop := d.stop
	stopped := d.stopped
	d.stop = nil
	if d.restore != nil {
		d.restore()
		d.restore = nil
	}
	d.mu.Unlock()
	if stop != nil {
		close(stop)
		<-stopped
	}
}

func (d *Display) index(key string) int {
	return slices.IndexFunc(d.tasks, func(t *task) bool { return t.key == key })
}

// start starts the redrawing goroutine, for postponed updates and the elapsed time.
func (d *Display) start() {
	if d.stop != nil {
		return
	}
	d.restore = enableANSI(d.out)
	d.stop = make(chan struct{})
	d.stopped = make(chan struct{})
	go d.run(d.stop, d.stopped)
}

func (d *Display) run(stop <-chan struct{}, stopped chan<- struct{}) {
	defer close(stopped)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-ticker.C:
			d.mu.Lock()
			d.refresh(now)
			d.mu.Unlock()
		}
	}
}

// refresh draws the tasks if an interval has passed. The caller must hold d.mu.
func (d *Display) refresh(now time.Time) {
	if d.isClosed || len(d.tasks) == 0 {
		return
	}
	width, height, isTerminal := d.size()
	if !isTerminal {
		d.printPlain(now)
		return
	}
	// Tasks shorter than interval are not drawn.
	if now.Sub(d.drawnAt) >= interval && now.Sub(d.tasks[0].since) >= interval {
		d.draw(now, width, height)
	}
}

// printPlain writes the text of each key, at most once per plainInterval.
func (d *Display) printPlain(now time.Time) {
	for _, t := range d.tasks {
		if t.text == t.printed || now.Sub(t.printedAt) < plainInterval {
			continue
		}
		t.printed = t.text
		t.printedAt = now
		_, _ = fmt.Fprintln(d.out, t.text)
	}
}

// draw replaces the lines on the terminal.
func (d *Display) draw(now time.Time, width, height int) {
	lines := d.lines(now, width, height)
	if slices.Equal(lines, d.drawn) {
		return
	}
	var b strings.Builder
	d.moveToFirst(&b, width)
	for _, line := range lines {
		b.WriteString(line + "\x1b[K\r\n")
	}
	b.WriteString("\x1b[J")
	d.drawn = lines
	d.drawnAt = now
	_, _ = io.WriteString(d.out, b.String())
}

// lines returns the lines for a terminal size.
func (d *Display) lines(now time.Time, width, height int) []string {
	limit := max(min(maxLines, height-2), 1)
	shown := d.tasks
	if len(shown) > limit {
		shown = shown[:max(limit-1, 1)]
	}
	lines := make([]string, 0, limit)
	for _, t := range shown {
		lines = append(lines, statusLine(t.text, now.Sub(t.since), width))
	}
	if rest := len(d.tasks) - len(shown); rest > 0 && limit > 1 {
		lines = append(lines, cut(fmt.Sprintf("… and %d more", rest), width-1))
	}
	return lines
}

// erase removes the lines from the terminal. The caller must hold d.mu.
func (d *Display) erase() {
	if len(d.drawn) == 0 {
		return
	}
	var b strings.Builder
	width, _, _ := d.size()
	d.moveToFirst(&b, width)
	b.WriteString("\x1b[J")
	d.drawn = nil
	d.drawnAt = time.Time{}
	_, _ = io.WriteString(d.out, b.String())
}

// moveToFirst writes codes to move the cursor from below the lines to the first line. A terminal wraps lines when it becomes
// narrower.
func (d *Display) moveToFirst(b *strings.Builder, width int) {
	rows := 0
	for _, line := range d.drawn {
		rows += max(1, (columns(line)+width-1)/max(width, 1))
	}
	b.WriteString("\r")
	if rows > 0 {
		fmt.Fprintf(b, "\x1b[%dA", rows)
	}
}

// aboveWriter writes above the lines.
type aboveWriter struct {
	display *Display
	w       io.Writer
}

// Unwrap returns the underlying writer, for printable.LineFor.
func (a *aboveWriter) Unwrap() io.Writer { return a.w }

func (a *aboveWriter) Write(p []byte) (int, error) {
	d := a.display
	d.mu.Lock()
	defer d.mu.Unlock()
	d.erase()
	return a.w.Write(p)
}
