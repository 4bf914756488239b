package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// user installs the released modules into temporary modules.
type user struct {
	dir     string // the folder of its modules
	clone   string // the released checkout
	version string
	proxy   *fileProxy
	modules []*goModule
}

// listedPackage is a package in the output of go list -json.
type listedPackage struct {
	ImportPath, Name string
	GoFiles          []string
}

// packages returns the packages of a released module, without packages of tests alone.
func (u *user) packages(ctx context.Context, m *goModule) ([]listedPackage, error) {
	text, err := output(ctx, u.proxy.goCommand(filepath.Join(u.clone, m.folder), "list", "-json=ImportPath,Name,GoFiles", "./..."))
	if err != nil {
		return nil, err
	}
	var all []listedPackage
	for decoder := json.NewDecoder(strings.NewReader(text)); ; {
		var pkg listedPackage
		err := decoder.Decode(&pkg)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", m.path, err)
		}
		if len(pkg.GoFiles) > 0 {
			all = append(all, pkg)
		}
	}
}

// getPackages runs go get for the public packages of each module, in a new module, and checks the types of a program with all
// imports. It does not run go mod tidy: tidy would add checksums missing after go get.
func (u *user) getPackages(ctx context.Context) error {
	for _, m := range u.modules {
		all, err := u.packages(ctx, m)
		if err != nil {
			return err
		}
		var program strings.Builder
		program.WriteString("package main\n\nimport (\n")
		get := []string{"get"}
		for _, pkg := range all {
			if isPublic(pkg.ImportPath, pkg.Name) {
				fmt.Fprintf(&program, "\t_ %q\n", pkg.ImportPath)
				get = append(get, pkg.ImportPath+"@"+u.version)
			}
		}
		program.WriteString(")\n\nfunc main() {}\n")
		dir, err := u.newModule(ctx, path.Base(m.path), program.String())
		if err != nil {
			return err
		}
		if _, err := output(ctx, u.proxy.goCommand(dir, get...)); err != nil {
			return err
		}
		if err := u.proxy.checkTypes(ctx, dir); err != nil {
			return err
		}
	}
	return nil
}

// newModule creates a module with a program.
func (u *user) newModule(ctx context.Context, name, program string) (string, error) {
	dir := filepath.Join(u.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600); err != nil {
		return "", err
	}
	_, err := output(ctx, u.proxy.goCommand(dir, "mod", "init", "example.com/"+name))
	return dir, err
}

// programs are the commands for users.
var programs = []string{"cli/cmd/anyctl", "apitest/cmd/apitest"}

// installPrograms installs the programs, runs anyctl against apitest, and runs both by go run.
func (u *user) installPrograms(ctx context.Context) error {
	bin := filepath.Join(u.dir, "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		return err
	}
	for _, program := range programs {
		install := u.proxy.goCommand(u.dir, "install", rootPath+"/"+program+"@"+u.version)
		install.env = append(install.env, "GOBIN="+bin)
		printed, err := output(ctx, install)
		if err != nil {
			return err
		}
		fmt.Printf("release: go install %s/%s@%s\n%s", rootPath, program, u.version, printed)
	}
	anyctl := filepath.Join(bin, "anyctl")
	getNamespaces := []string{"exec", "--", anyctl, "get", "namespaces", "-o", "name"}
	for _, run := range []struct {
		command command
		want    string
	}{
		{command{dir: u.dir, name: anyctl, args: []string{"version", "--client"}}, u.version},
		{command{dir: u.dir, name: filepath.Join(bin, "apitest"), args: getNamespaces}, "namespace/default"},
		{u.goRun("cli/cmd/anyctl", "version", "--client"), u.version},
		{u.goRun("apitest/cmd/apitest", getNamespaces...), "namespace/default"},
	} {
		printed, err := output(ctx, run.command)
		if err != nil {
			return err
		}
		if !strings.Contains(printed, run.want) {
			return fmt.Errorf("%s %s printed no %q:\n%s", run.command.name, strings.Join(run.command.args, " "), run.want, printed)
		}
		fmt.Println(printed)
	}
	return nil
}

// goRun returns a command to run a released program.
func (u *user) goRun(program string, args ...string) command {
	return u.proxy.goCommand(u.dir, append([]string{"run", rootPath + "/" + program + "@" + u.version}, args...)...)
}

// buildArtifacts builds the programs of all platforms in the released checkout and copies them to a folder, with the file proxy. It
// compares the checksums.
func (u *user) buildArtifacts(ctx context.Context, folder string) error {
	dist := filepath.Join(u.clone, ".bin", "dist")
	for _, c := range []command{
		{dir: u.clone, env: u.proxy.env, name: "make", args: []string{"artifacts"}},
		{dir: dist, name: "sha256sum", args: []string{"--check", "SHA256SUMS"}},
	} {
		printed, err := output(ctx, c)
		if err != nil {
			return err
		}
		fmt.Println(printed)
	}
	if err := os.CopyFS(filepath.Join(folder, "proxy"), os.DirFS(u.proxy.dir)); err != nil {
		return err
	}
	return os.CopyFS(folder, os.DirFS(dist))
}
