// Package oracle contains only tests. They run command lines through anyctl and through the sandbox's kubectl, and compare
// output, exit code and effect.
//
// The cases are in the files *_cases_test.go, a file per group of verbs. Each command line runs twice with equal objects: each
// program runs in its own namespace or, for ReadOnly cases, in the namespace of the fixtures. Values that vary between runs are
// masked: ages, UIDs, timestamps, resourceVersions, hashes, the namespace and the program's name. The case must explain any
// remaining difference.
//
// The namespaces of cases stay until the sandbox ends: their deletion would take the server longer than all command lines.
package oracle
