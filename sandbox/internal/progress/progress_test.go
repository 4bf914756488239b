package progress

import (
	"bytes"
	"errors"
	"regexp"
	"testing"
)

func TestStep_BeginAndEnd(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"done":   {nil, `^sandbox: building etcd\nsandbox: building etcd: done after [\d.]+m?s\n$`},
		"failed": {errors.New("no"), `^sandbox: building etcd\nsandbox: building etcd: failed after [\d.]+m?s\n$`},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			New(&out).Begin("building %s", "etcd").End(c.err)
			if !regexp.MustCompile(c.want).MatchString(out.String()) {
				t.Errorf("got %q", out.String())
			}
		})
	}
}

func TestStep_RewritesTerminalLine(t *testing.T) {
	var out bytes.Buffer
	report := &Report{out: &out, terminal: true}
	report.Begin("starting").End(nil)
	want := `^(\r\x1b\[Ksandbox: starting \d+s)*\r\x1b\[Ksandbox: \r\x1b\[Ksandbox: starting: done after \d+s\n$`
	if !regexp.MustCompile(want).MatchString(out.String()) {
		t.Errorf("got %q", out.String())
	}
}

func TestReport_NilIsSilent(t *testing.T) {
	report := New(nil)
	report.Printf("hello")
	report.Begin("starting").End(nil)
}
