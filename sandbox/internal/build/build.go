//go:build unix

package build

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/anykind/anykind/sandbox/internal/filelock"
	"github.com/anykind/anykind/sandbox/internal/process"
	"github.com/anykind/anykind/sandbox/internal/progress"
)

// scratchPattern names the folders unfinished builds work in.
const scratchPattern = ".building-"

// Build makes sure that every binary is in the cache, telling report what it
// builds. Builds by several processes take turns. When ctx ends or this process
// dies, nothing half-built stays in the cache.
func (c *Cache) Build(ctx context.Context, report *progress.Report, binaries ...Binary) error {
	missing := slices.DeleteFunc(slices.Clone(binaries), c.Has)
	if len(missing) == 0 {
		return nil
	}
	lock, err := filelock.Wait(ctx, c.lockPath(), func() {
		report.Say("another process is building into %s; waiting for it", c.Dir)
	})
	if err != nil {
		return fmt.Errorf("waiting to build %s: %w", missing[0].Name, err)
	}
	defer lock.Unlock()
	c.removeLeftovers()
	for _, b := range missing {
		if c.Has(b) { // built by the process we waited for
			continue
		}
		if err := c.build(ctx, report, b); err != nil {
			return fmt.Errorf("building %s %s: %w", b.Name, b.Version, err)
		}
	}
	return nil
}

// removeLeftovers removes what builds that could not clean up left behind. The
// caller holds the lock, so no build is under way.
func (c *Cache) removeLeftovers() {
	left, _ := filepath.Glob(filepath.Join(c.Dir, scratchPattern+"*"))
	for _, dir := range left {
		_ = os.RemoveAll(dir)
	}
}

func (c *Cache) build(ctx context.Context, report *progress.Report, b Binary) (err error) {
	scratch, err := os.MkdirTemp(c.Dir, scratchPattern)
	if err != nil {
		return err
	}
	family, err := process.NewFamily(scratch)
	if err != nil {
		return err
	}
	defer func() { _ = family.Close() }() // what it cannot remove, the next build does

	step := report.Begin("building %s %s (%s on 2 cores the first time, cached afterwards)", b.Name, b.Version, b.Usual)
	defer func() { step.End(err) }()

	module, err := c.prepareModule(ctx, family, scratch, b)
	if err != nil {
		return err
	}
	output := filepath.Join(scratch, b.Name)
	_, err = goCommand(ctx, family, c.moduleDir(b), scratch,
		"build", "-mod=mod", "-trimpath", "-ldflags", b.linkFlags(), "-o", output, b.Package)
	if err != nil {
		return err
	}
	if b.Name == Kwok().Name {
		if err := c.installStages(b, module, scratch); err != nil {
			return err
		}
	}
	return os.Rename(output, c.Path(b))
}

// prepareModule downloads b's module and writes the module it is built in.
func (c *Cache) prepareModule(ctx context.Context, family *process.Family, scratch string, b Binary) (*downloaded, error) {
	out, err := goCommand(ctx, family, scratch, scratch, "mod", "download", "-json", b.Module+"@"+b.Version)
	var module downloaded
	unreadable := json.Unmarshal(out, &module)
	if module.Error != "" {
		return nil, fmt.Errorf("%s\nIs the version right, and can this machine reach the Go module proxy (go env GOPROXY)?", module.Error)
	}
	if err != nil {
		return nil, err
	}
	if unreadable != nil {
		return nil, fmt.Errorf("reading what `go mod download -json` printed: %w", unreadable)
	}
	out, err = goCommand(ctx, family, scratch, scratch, "mod", "edit", "-json", module.GoMod)
	if err != nil {
		return nil, err
	}
	source, err := parseSourceModule(out)
	if err != nil {
		return nil, err
	}
	text := generatedModule(b, source)
	if len(b.patches) > 0 {
		dir, err := patchedCopy(b.patches, module.Dir, scratch)
		if err != nil {
			return nil, err
		}
		text += fmt.Sprintf("\nreplace %s => %s\n", b.Module, strconv.Quote(dir))
	}
	return &module, c.writeModule(b, text)
}

// writeModule puts go.mod in place. A go.sum of an earlier build stays: it saves
// the next program of the same version most look-ups.
func (c *Cache) writeModule(b Binary, text string) error {
	dir := c.moduleDir(b)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o644)
}
