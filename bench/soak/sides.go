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
	"path/filepath"

	"github.com/anykind/anykind/bench/internal/soak"
)

// process is one side's program.
type process struct {
	name    string
	command *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
}

// startSides builds both programs and starts them with the same configuration.
func startSides(ctx context.Context, dir string, config *soak.Config) ([]*process, error) {
	var sides []*process
	for _, name := range []string{"ours", "theirs"} {
		program := filepath.Join(dir, name)
		build := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/anykind/anykind/bench/soak/"+name)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if output, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w\n%s", name, err, output)
		}
		side, err := start(ctx, name, program, config)
		if err != nil {
			return nil, err
		}
		sides = append(sides, side)
	}
	return sides, nil
}

func start(ctx context.Context, name, program string, config *soak.Config) (*process, error) {
	log, err := os.Create(program + ".log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &process{name: name, command: exec.CommandContext(ctx, program)}
	p.command.Stderr = log // client-go logs every broken watch
	if p.in, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	p.out = json.NewDecoder(bufio.NewReader(out))
	return p, json.NewEncoder(p.in).Encode(config)
}

// ask writes a command and reads its answer.
func (p *process) ask(command string, answer any) error {
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		return fmt.Errorf("%s: %s: %w: %s", p.name, command, err, p.lastWords())
	}
	if err := p.out.Decode(answer); err != nil {
		return fmt.Errorf("%s: %s: %w: %s", p.name, command, err, p.lastWords())
	}
	return nil
}

// lastWords returns the end of what the program wrote to its log.
func (p *process) lastWords() string {
	text, err := os.ReadFile(p.command.Path + ".log")
	if err != nil {
		return ""
	}
	return string(text[max(0, len(text)-500):])
}

func (p *process) sample() (*soak.Sample, error) {
	var sample soak.Sample
	return &sample, p.ask(soak.CommandSample, &sample)
}

func (p *process) states() (states soak.States, err error) {
	return states, p.ask(soak.CommandStates, &states)
}

// stop ends the side's caches and its process, and returns what was left of them.
func (p *process) stop() (soak.Sample, error) {
	var left soak.Sample
	if err := p.ask(soak.CommandStop, &left); err != nil {
		return left, err
	}
	return left, p.command.Wait()
}
