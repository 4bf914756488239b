package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed versions.txt
var versionList string

// overlays has a folder for each upstream with files that are added to its module, each with .txt after its name.
//
//go:embed overlay
var overlays embed.FS

// upstream is a module with test suites to run against anykind.
type upstream struct {
	name    string   // of its folder in overlay and in the cache
	files   []string // its folders in overlay if several modules share them
	module  string   // its path; versions.txt has its version and checksum
	patches []patch
	// tests are the folders of copied tests, for a module with tests of exported identifiers only. The generated module then
	// requires the upstream module, and does not compile its packages again. Empty means a copy of the whole module.
	tests []string
	// requires are the folders of this repository's modules imported by the patched constructors.
	requires []string
	// extra are further required modules with their versions: of an overlay's test, or newer than upstream's requirements.
	extra []string
	// copies are folders of other modules that upstream's Makefile downloads.
	copies []copies
	// sharesVersions raises the requirements to the workspace's versions.
	sharesVersions bool
	// findsFiles is set if the tests find files by the path of their source: they compile without -trimpath.
	findsFiles bool
	// startsServer is set if the tests start Kubernetes' API server in their own process. They compile in a module like the
	// sandbox's.
	startsServer bool
}

// copies are the files of a folder of a module of versions.txt. They are added to the same folder.
type copies struct{ module, folder string }

// version is a line of versions.txt.
type version struct{ Version, Sum string }

// parseVersions reads lines of a module's path, version and checksum. Empty lines and lines beginning with # are skipped.
func parseVersions(list string) (map[string]version, error) {
	versions := map[string]version{}
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0][0] == '#':
		case len(fields) != 3:
			return nil, fmt.Errorf("versions.txt: %q is not a module's path, version and checksum", strings.TrimSpace(line))
		default:
			versions[fields[0]] = version{fields[1], fields[2]}
		}
	}
	return versions, nil
}

// repository is the root of this repository, relative to the working directory of the program and its tests.
const repository = "../.."

// anykindModule is the path of this repository's main module.
const anykindModule = "github.com/anykind/anykind"

// generate returns the folder of a copy of the upstream module with patched constructors. The copy requires this repository's
// modules. It is made again only if the module's version, the patches or the overlay have changed.
func (u *upstream) generate(ctx context.Context, cache string) (dir string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("generate %s: %w", u.name, err)
		}
	}()
	versions, err := parseVersions(versionList)
	if err != nil {
		return "", err
	}
	pinned, ok := versions[u.module]
	if !ok {
		return "", fmt.Errorf("versions.txt lacks %s", u.module)
	}
	root, err := filepath.Abs(repository)
	if err != nil {
		return "", err
	}
	workspace := ""
	if u.sharesVersions {
		if workspace, err = workspaceGoMod(ctx, root); err != nil {
			return "", err
		}
	}
	key, err := u.key(pinned, root, workspace)
	if err != nil {
		return "", err
	}
	// One folder for each clone of the repository: go's compiled packages are reused after a change of the patches.
	dir = filepath.Join(cache, u.name+"-"+short(root))
	stamp := filepath.Join(dir, ".anykind")
	if made, err := os.ReadFile(stamp); err == nil && string(made) == key {
		return dir, nil
	}
	source, err := download(ctx, u.module, pinned)
	if err != nil {
		return "", err
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := u.write(ctx, source, dir, root); err != nil {
		return "", err
	}
	if u.sharesVersions {
		if err := requireWorkspace(ctx, dir, workspace); err != nil {
			return "", err
		}
	}
	return dir, os.WriteFile(stamp, []byte(key), 0o600)
}

// short returns a short hash of a text.
func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// key returns a hash of a generated module's inputs. workspace is the result of workspaceGoMod, or empty.
func (u *upstream) key(pinned version, root, workspace string) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, pinned, root, workspace, u.tests, u.requires, u.extra, u.copies, u.startsServer)
	for _, p := range u.patches {
		fmt.Fprintf(sum, "%T %+v\n", p, p)
	}
	if len(u.copies) > 0 {
		fmt.Fprint(sum, versionList)
	}
	if u.startsServer { // it has its own versions of these files
		for _, folder := range u.requires {
			text, err := os.ReadFile(filepath.Join(root, folder, "go.mod"))
			if err != nil {
				return "", err
			}
			sum.Write(text)
		}
	}
	err := u.overlay(func(name string, content []byte) error {
		fmt.Fprintf(sum, "%s %d\n%s", name, len(content), content)
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil))[:12], err
}

// overlay calls visit with the additional files of the module.
func (u *upstream) overlay(visit func(name string, content []byte) error) error {
	folders := u.files
	if len(folders) == 0 {
		folders = []string{u.name}
	}
	for _, folder := range folders {
		base := "overlay/" + folder
		err := fs.WalkDir(overlays, base, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := overlays.ReadFile(path)
			if err != nil {
				return err
			}
			return visit(strings.TrimSuffix(strings.TrimPrefix(path, base+"/"), ".txt"), content)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// write writes the module into dir.
func (u *upstream) write(ctx context.Context, source, dir, root string) error {
	if err := u.copy(source, dir); err != nil {
		return err
	}
	for _, p := range u.patches {
		if err := p.apply(dir); err != nil {
			return err
		}
	}
	err := u.overlay(func(name string, content []byte) error {
		path := filepath.Join(dir, filepath.FromSlash(name))
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o600))
	})
	if err != nil {
		return err
	}
	if err := u.copyOthers(ctx, dir); err != nil {
		return err
	}
	edit := []string{"mod", "edit"}
	for _, folder := range u.requires {
		module := strings.TrimSuffix(anykindModule+"/"+folder, "/.")
		edit = append(edit, "-require="+module+"@v0.0.0", "-replace="+module+"="+filepath.Join(root, folder))
	}
	for _, module := range u.extra {
		edit = append(edit, "-require="+module)
	}
	nested, err := u.nestedModules(ctx, dir)
	if err != nil {
		return err
	}
	if _, err = goCommand(ctx, dir, append(edit, nested...)...); err != nil || !u.startsServer {
		return err
	}
	return u.writeServerModule(ctx, source, dir, root)
}

// nestedModules returns the edits of go.mod that replace modules in the module's folders by their published versions. An archive of
// a module has no nested modules.
func (u *upstream) nestedModules(ctx context.Context, dir string) (edits []string, err error) {
	versions, err := parseVersions(versionList)
	if err != nil {
		return nil, err
	}
	m, err := readGoMod(ctx, filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	for _, r := range m.Replace {
		if strings.HasPrefix(r.New.Path, "./") {
			edits = append(edits, "-replace="+r.Old.Path+"="+r.Old.Path+"@"+versions[u.module].Version)
		}
	}
	return edits, nil
}

// compilerFlags are Makefile's flags: packages that the tests of this repository compile are not compiled again.
const compilerFlags = "-trimpath -gcflags=all=-dwarf=false"

// goCommand runs the go command in dir and returns its standard output. The caller's settings for modules are ignored.
func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	return goCommandWith(ctx, dir, []string{"GOFLAGS=-mod=mod " + compilerFlags}, args...)
}

// goCommandWith runs the go command with additional environment variables.
func goCommandWith(ctx context.Context, dir string, env []string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = dir
	command.Env = append(append(os.Environ(), "GOWORK=off", "PWD="+dir), env...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return output, fmt.Errorf("go %s: %w: %s", strings.Join(args[:2], " "), err, lastLines(stderr.Bytes()))
	}
	return output, nil
}

// maxErrorLines limits the lines of a failed command's output in an error.
const maxErrorLines = 30

func lastLines(text []byte) string {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-maxErrorLines):], []byte("\n")))
}
