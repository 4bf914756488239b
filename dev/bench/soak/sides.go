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

	"github.com/anykind/anykind/dev/bench/internal/program"
	"github.com/anykind/anykind/dev/bench/internal/soak"
)

// process is one side's program.
type process struct {
	name    string
	command *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
}

// startSides builds programs and starts them with the same configuration.
func startSides(ctx context.Context, dir string, names []string, config *soak.Config) ([]*process, error) {
	var sides []*process
	for _, name := range names {
		path := filepath.Join(dir, name)
		err := program.Build(ctx, "", "github.com/anykind/anykind/dev/bench/soak/"+name, path, nil, []string{"CGO_ENABLED=0"})
		if err != nil {
			return nil, err
		}
		side, err := start(ctx, name, path, config)
		if err != nil {
			return nil, err
		}
		sides = append(sides, side)
	}
	return sides, nil
}

func start(ctx context.Context, name, path string, config *soak.Config) (*process, error) {
	log, err := os.Create(path + ".log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &process{name: name, command: exec.CommandContext(ctx, path)}
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

// send writes a command and decodes the response.
func (p *process) send(command string, result any) error {
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		return fmt.Errorf("%s: %s: %w: %s", p.name, command, err, p.logTail())
	}
	if err := p.out.Decode(result); err != nil {
		return fmt.Errorf("%s: %s: %w: %s", p.name, command, err, p.logTail())
	}
	return nil
}

// logTail returns the end of the program's log.
func (p *process) logTail() string {
	text, err := os.ReadFile(p.command.Path + ".log")
	if err != nil {
		return ""
	}
	return string(text[max(0, len(text)-500):])
}

func (p *process) sample() (*soak.Sample, error) {
	var sample soak.Sample
	return &sample, p.send(soak.CommandSample, &sample)
}

func (p *process) versions() (versions soak.Versions, err error) {
	return versions, p.send(soak.CommandVersions, &versions)
}

// stop ends the side's caches and its process, and returns its last sample.
func (p *process) stop() (soak.Sample, error) {
	var left soak.Sample
	if err := p.send(soak.CommandStop, &left); err != nil {
		return left, err
	}
	return left, p.command.Wait()
}
