package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// barriers are what stands between a child and all that it has no business with.
// Each is put up for the current thread alone, and for good; what the thread
// starts inherits it. The order matters: the later ones take away what the
// earlier ones need.
var barriers = []struct {
	name string
	up   func(programs []string) error
}{
	{"no_new_privs", func([]string) error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }},
	{"landlock", landlock},
	{"seccomp", func([]string) error { return filterCalls() }},
	{"capabilities", func([]string) error { return dropCapabilities() }},
}

// startConfined starts a child behind all barriers that the kernel has.
func startConfined(cmd *exec.Cmd) error {
	return onOwnThread(func() error {
		programs := []string{cmd.Path}
		if pdftotext, err := exec.LookPath("pdftotext"); err == nil {
			programs = append(programs, pdftotext)
		}
		for _, b := range barriers {
			_ = b.up(programs) // Barriers tells of those that don't stand here
		}
		return cmd.Start()
	})
}

// Barriers names what confines the children that read files, and what of it
// this system doesn't have, with the reason.
func Barriers() (on []string, off map[string]error) {
	off = map[string]error{}
	_ = onOwnThread(func() error {
		for _, b := range barriers {
			if err := b.up(nil); err != nil {
				off[b.name] = err
			} else {
				on = append(on, b.name)
			}
		}
		return nil
	})
	return on, off
}

// onOwnThread runs f on a thread that ends with it. It is never the first one of
// the process, which can't end.
func onOwnThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			defer runtime.UnlockOSThread() // held so long, it isn't taken again
			done <- onOwnThread(f)
			return
		}
		done <- f()
	}()
	return <-done
}

// Hide keeps the other processes of the same user from reading this one's
// memory, which holds keys, be it live or as a core dump.
func Hide() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// libraries are where programs have their libraries, and pdftotext its tables
// and fonts.
var libraries = []string{
	"/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/nix/store", "/gnu/store", "/etc/ld.so.cache",
	"/usr/share/poppler", "/usr/share/fonts", "/usr/share/fontconfig", "/etc/fonts", "/var/cache/fontconfig",
}

// readable is what a child may read and run: the programs and their libraries.
func readable(programs []string) []string {
	paths := append([]string{}, libraries...)
	for _, p := range programs {
		paths = append(paths, p)
		// One that was installed apart from the system has them beside it.
		for _, folder := range []string{"lib", "lib64", "share/poppler", "Cellar"} {
			paths = append(paths, filepath.Join(filepath.Dir(filepath.Dir(p)), folder))
		}
	}
	return paths
}

const (
	landlockFiles   = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	landlockFolders = landlockFiles | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// landlockFirst is all that the first version of Landlock knows of files.
	landlockFirst = unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1
)

// landlock denies all of the file system but what a child needs, and where the
// kernel can, connections and signals to other processes.
func landlock(programs []string) error {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return fmt.Errorf("the kernel has none: %w", errno)
	}
	rules := unix.LandlockRulesetAttr{Access_fs: landlockFirst}
	for _, since := range []struct {
		version uintptr
		add     unix.LandlockRulesetAttr
	}{
		{2, unix.LandlockRulesetAttr{Access_fs: unix.LANDLOCK_ACCESS_FS_REFER}},
		{3, unix.LandlockRulesetAttr{Access_fs: unix.LANDLOCK_ACCESS_FS_TRUNCATE}},
		{4, unix.LandlockRulesetAttr{Access_net: unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP}},
		{5, unix.LandlockRulesetAttr{Access_fs: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV}},
		{6, unix.LandlockRulesetAttr{Scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL}},
	} {
		if version >= since.version {
			rules.Access_fs |= since.add.Access_fs
			rules.Access_net |= since.add.Access_net
			rules.Scoped |= since.add.Scoped
		}
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), unsafe.Sizeof(rules), 0)
	if errno != 0 {
		return errno
	}
	defer unix.Close(int(fd))
	for _, path := range readable(programs) {
		if err := landlockAllow(fd, path); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

func landlockAllow(rules uintptr, path string) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var found unix.Stat_t
	if err := unix.Fstat(fd, &found); err != nil {
		return err
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: landlockFiles, Parent_fd: int32(fd)}
	if found.Mode&unix.S_IFMT == unix.S_IFDIR {
		rule.Allowed_access = landlockFolders
	}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, rules, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// keptCapabilities let a child of a proxy that runs as root be started from a
// folder of somebody else's. What it can read, Landlock says.
const keptCapabilities = 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH

// dropCapabilities takes away the powers of a proxy that runs as root.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	kept := data[0].Permitted & keptCapabilities
	data = [2]unix.CapUserData{{Permitted: kept, Effective: kept}}
	return unix.Capset(&header, &data[0])
}
