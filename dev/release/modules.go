package main

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// rootPath is the path of the main module. The paths of the other modules are below it, like their folders.
const rootPath = "github.com/anykind/anykind"

// goModule is a Go module of the repository.
type goModule struct {
	path      string
	folder    string // relative to the top of the repository; "." for the main module
	published bool
	requires  []string // paths of other modules of the repository
	replaces  bool
}

// tag returns the git tag of a version of the module.
func (m *goModule) tag(version string) string {
	if m.folder == "." {
		return version
	}
	return m.folder + "/" + version
}

// readModules returns the modules that .ci/modules names, each after the modules that it requires.
func readModules(root string) ([]*goModule, error) {
	list, err := os.Open(filepath.Join(root, ".ci", "modules"))
	if err != nil {
		return nil, err
	}
	defer list.Close()
	modules := map[string]*goModule{}
	for lines := bufio.NewScanner(list); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 4 || fields[1] != "users" && fields[1] != "developers" {
			return nil, fmt.Errorf("read .ci/modules: %q is not FOLDER users|developers COMPONENTS MINUTES", lines.Text())
		}
		m := &goModule{folder: fields[0], published: fields[1] == "users"}
		if err := m.readGoMod(root); err != nil {
			return nil, err
		}
		modules[m.path] = m
	}
	return sortModules(modules)
}

func (m *goModule) readGoMod(root string) error {
	file, err := parseGoMod(filepath.Join(root, m.folder, "go.mod"))
	if err != nil {
		return err
	}
	m.path = file.Module.Mod.Path
	for _, required := range file.Require {
		if isOwn(required.Mod.Path) {
			m.requires = append(m.requires, required.Mod.Path)
		}
	}
	m.replaces = len(file.Replace) > 0
	if m.published && m.replaces {
		return fmt.Errorf("module %s is published and has replace directives, with which nobody can install its programs", m.path)
	}
	return nil
}

func parseGoMod(path string) (*modfile.File, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(path, content, nil)
}

// isOwn reports whether a module path belongs to this repository.
func isOwn(path string) bool { return path == rootPath || strings.HasPrefix(path, rootPath+"/") }

// sortModules returns the modules, each after the modules that it requires, by path otherwise.
func sortModules(modules map[string]*goModule) ([]*goModule, error) {
	var sorted []*goModule
	state := map[string]int{} // 1: its requirements are being added, 2: added
	var add func(path string) error
	add = func(path string) error {
		m, found := modules[path]
		switch {
		case !found:
			return fmt.Errorf(".ci/modules lacks %s, which other modules require", path)
		case state[path] == 1:
			return fmt.Errorf("module %s requires itself through other modules", path)
		case state[path] == 2:
			return nil
		}
		state[path] = 1
		for _, required := range slices.Sorted(slices.Values(m.requires)) {
			if err := add(required); err != nil {
				return err
			}
			if m.published && !modules[required].published {
				return fmt.Errorf("module %s is published and requires %s, which is not", path, required)
			}
		}
		state[path] = 2
		sorted = append(sorted, m)
		return nil
	}
	paths := make([]*goModule, 0, len(modules))
	for _, m := range modules {
		paths = append(paths, m)
	}
	slices.SortFunc(paths, func(a, b *goModule) int { return cmp.Compare(a.path, b.path) })
	for _, m := range paths {
		if err := add(m.path); err != nil {
			return nil, err
		}
	}
	return sorted, nil
}

// published returns the modules that users require.
func published(modules []*goModule) []*goModule {
	return slices.DeleteFunc(slices.Clone(modules), func(m *goModule) bool { return !m.published })
}
