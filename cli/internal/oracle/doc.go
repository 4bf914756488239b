// Package oracle has tests alone: they run command lines through anyctl and through the sandbox's kubectl, and compare
// output, exit code and effect.
//
// The table is in the files *_cases_test.go, one for each group of verbs. A line runs twice with the same objects: through
// each program in a namespace of its own or, if the case is ReadOnly, in the namespace of the fixtures. What differs between
// any two runs is masked: ages, UIDs, timestamps, resourceVersions, hashes, the namespace and the program's name. A
// difference that remains needs an explanation in the case.
package oracle
