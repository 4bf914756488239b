//go:build unix

// Package build builds the sandbox's binaries from Go modules and caches them. It needs only the user's go command and module
// proxy.
//
// Kubernetes cannot be installed with `go install`, because its go.mod replaces the k8s.io modules by folders of its own tree. So
// every binary is built in a small generated module. The generated module requires the binary's module and the published k8s.io
// versions of the same release. kwok is built from a patched copy.
package build

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"github.com/anykind/anykind/sandbox/internal/filelock"
	"github.com/anykind/anykind/sandbox/internal/process"
	"github.com/anykind/anykind/sandbox/internal/progress"
)

// scratchPattern is the prefix of the folders of unfinished builds.
const scratchPattern = ".building-"

// Build builds the binaries missing in the cache, and reports its progress. Builds of several processes run in sequence. If ctx
// ends or this process dies, no unfinished binary is left in the cache.
func (c *Cache) Build(ctx context.Context, report *progress.Report, binaries ...Binary) error {
	missing := slices.DeleteFunc(slices.Clone(binaries), c.Has)
	if len(missing) == 0 {
		return nil
	}
	lock, err := filelock.Wait(ctx, c.lockPath(), func() {
		report.Printf("another process is building into %s; waiting for it", c.Dir)
	})
	if err != nil {
		return fmt.Errorf("wait to build %s: %w", missing[0].Name, err)
	}
	defer lock.Unlock()
	c.removeLeftovers()
	for _, b := range missing {
		if c.Has(b) { // built by a concurrent process
			continue
		}
		if err := c.build(ctx, report, b); err != nil {
			return fmt.Errorf("build %s %s: %w", b.Name, b.Version, err)
		}
	}
	return nil
}

// removeLeftovers removes the folders of crashed builds. The caller holds the lock, so no build is running.
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
	defer func() { _ = family.Close() }() // the next build removes the rest

	step := report.Begin("building %s %s (%s on 2 cores the first time, cached afterwards)", b.Name, b.Version, b.Usual)
	defer func() { step.End(err) }()

	module, err := c.prepareModule(ctx, family, scratch, b)
	if err != nil {
		return err
	}
	output := filepath.Join(scratch, b.Name)
	// The linker drops debug information, which costs a sixth of the compiler's time.
	_, err = goCommand(ctx, family, c.moduleDir(b), scratch,
		"build", "-mod=mod", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", b.linkFlags(), "-o", output, b.Package)
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

// prepareModule downloads b's module and writes the generated module.
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
		return nil, fmt.Errorf("decode output of `go mod download -json`: %w", unreadable)
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

// writeModule writes go.mod. The go.sum of an earlier build stays: it saves the next program of the same version most lookups.
func (c *Cache) writeModule(b Binary, text string) error {
	dir := c.moduleDir(b)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o644)
}

// CacheEnv is the environment variable with the path of the cache folder.
const CacheEnv = "ANYKIND_SANDBOX_CACHE"

// Cache is the folder with built binaries between runs:
//
//	bin/NAME-VERSION-OS-ARCH         finished binaries
//	module/NAME-VERSION/             the generated modules they are built in
//	build.lock                       held while building
//	.building-*/                     the files of a running build
//	run/NAME/                        locks, log and record of a background cluster
type Cache struct{ Dir string }

// OpenCache returns the cache in dir. The default is $CacheEnv, or else a folder in the user's cache folder.
func OpenCache(dir string) (*Cache, error) {
	if dir == "" {
		dir = os.Getenv(CacheEnv)
	}
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("find a folder for built binaries: %w (set %s)", err, CacheEnv)
		}
		dir = filepath.Join(user, "anykind", "sandbox")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find a folder for built binaries: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		return nil, fmt.Errorf("create the folder for built binaries: %w (set %s to a writable one)", err, CacheEnv)
	}
	return &Cache{Dir: dir}, nil
}

// Path returns the binary's path in the cache.
func (c *Cache) Path(b Binary) string {
	version := b.Version
	if b.Revision > 0 {
		version += fmt.Sprintf("+patch%d", b.Revision)
	}
	return filepath.Join(c.Dir, "bin", fmt.Sprintf("%s-%s-%s-%s", b.Name, version, runtime.GOOS, runtime.GOARCH))
}

// StagesPath returns the path of kwok's stages, the behavior of fake nodes and pods.
func (c *Cache) StagesPath(kwok Binary) string { return c.Path(kwok) + "-stages.yaml" }

// Has reports whether b is built.
func (c *Cache) Has(b Binary) bool {
	info, err := os.Stat(c.Path(b))
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o100 != 0
}

func (c *Cache) moduleDir(b Binary) string {
	name := b.Name
	if b.Staging { // programs of one version share their dependencies
		name = "kubernetes"
	}
	return filepath.Join(c.Dir, "module", name+"-"+b.Version)
}

func (c *Cache) lockPath() string { return filepath.Join(c.Dir, "build.lock") }
