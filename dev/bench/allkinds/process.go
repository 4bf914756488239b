//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/anykind/anykind/dev/bench/internal/library"
	"github.com/anykind/anykind/dev/bench/internal/program"
)

// process is the program of a library. Package library has the protocol.
type process struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
}

func start(ctx context.Context, path, kubeconfig string) (*process, error) {
	p := &process{command: exec.CommandContext(ctx, path, kubeconfig)}
	p.command.Stderr = os.Stderr
	var err error
	if p.in, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = json.NewDecoder(bufio.NewReader(out))
	return p, p.command.Start()
}

func (p *process) send(command string, args ...string) (a library.Result, err error) {
	if _, err := fmt.Fprintln(p.in, strings.Join(append([]string{command}, args...), "\t")); err != nil {
		return a, err
	}
	if err := p.out.Decode(&a); err != nil {
		return a, fmt.Errorf("%s: %w", command, err)
	}
	return a, nil
}

func (p *process) stop() {
	_ = p.in.Close()
	_ = p.command.Wait()
}

// ticksPerSecond is the unit of times in Linux' /proc.
const ticksPerSecond = 100

// cpu returns the processor time of the process, in seconds.
func (p *process) cpu() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(text), ") ") // of the name
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc has no times: %s", text)
	}
	user, err := strconv.ParseFloat(fields[11], 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseFloat(fields[12], 64)
	return (user + system) / ticksPerSecond, err
}

// memory returns a value of /proc/PID/status, in bytes.
func (p *process) memory(name string) (float64, error) {
	kilobytes, err := program.ProcValue(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid), name)
	return kilobytes * 1024, err
}
