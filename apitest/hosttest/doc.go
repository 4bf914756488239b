// Package hosttest runs the main module's cluster tests on apitest. It consists of tests only.
package hosttest
