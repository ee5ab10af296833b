"""What is in the image: the programs, and of Debian what they need to run, file by file.

Two folders, which become the two layers: that of Debian, which stays the same from build to build until
a package changes, and that of the programs.
"""

import os
import re
import shutil
import subprocess

PROGRAMS = ("propeller-controller", "propeller-webhook", "propeller-certgen", "propeller-standalone")
USER = 65532

# No library, but used: the roots for TLS to a broker of the outside, and the time zones of schedules.
ROOTS = "ca-certificates"
ZONES = "tzdata"
ROOTS_FOLDER = "/usr/share/ca-certificates/mozilla/"
ROOTS_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
ZONES_FOLDER = "/usr/share/zoneinfo/"
# The same zones again with leap seconds, and tables about the zones.
ZONES_UNUSED = re.compile(r"right(/|$)|posix(/|$)|localtime$|posixrules$|.*\.(tab|zi|list)$|leapseconds$")


class Unusable(Exception):
    """What the machine lacks, in words for its user."""


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True, check=False,
                            env={**os.environ, "LC_ALL": "C"})
    return result.stdout


def write(root, path, text):
    target = root + path
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "w", encoding="utf-8") as file:
        file.write(text)


def link(root, path, to):
    os.makedirs(os.path.dirname(root + path), exist_ok=True)
    os.symlink(to, root + path)


def copy(root, source, path):
    """The file, and nothing about whose it is."""
    os.makedirs(os.path.dirname(root + path), exist_ok=True)
    shutil.copyfile(source, root + path)
    if os.stat(source).st_mode & 0o100:
        os.chmod(root + path, 0o755)


def merged(path):
    """Where a file is on a Debian without /lib of its own."""
    return "/usr" + path if re.match("/lib(64)?/", path) else path


def libraries(programs):
    """Paths that the loader opens for them, itself among these."""
    said = run("ldd", *programs)
    if "not found" in said:
        raise Unusable(f"a library is missing: {said.partition(' => not found')[0].split()[-1]}")
    found = re.findall(r"(?:=> |^\t)(/\S+) \(0x", said, re.MULTILINE)
    if not found:
        raise Unusable("ldd names no library of the programs")
    return sorted(set(found))


def owners(paths):
    """path -> Debian package; dpkg knows some files by the names they had before /lib moved."""
    asked = {name: path for path in paths for name in (path, path.removeprefix("/usr"))}
    said = run("dpkg-query", "--search", *asked)
    found = {}
    for line in said.splitlines():
        package, _, path = line.partition(": ")
        if path in asked:
            found[asked[path]] = package.partition(":")[0]
    for path in paths:
        if path not in found:
            raise Unusable(f"{path} belongs to no Debian package; config/image/Containerfile builds on Debian")
    return found


def files_of(package):
    said = run("dpkg-query", "--listfiles", package).splitlines()
    if not said:
        raise Unusable(f"the package '{package}' is not installed")
    return said


def add_libraries(root, programs):
    """As Debian has them: the file under its whole name, and a link from the name programs ask for."""
    found = {}
    asked = libraries(programs)
    real = {path: merged(os.path.realpath(path)) for path in asked}
    package_of = owners(sorted(set(real.values())))
    for path in asked:
        target = real[path]
        if target not in found:
            copy(root, os.path.realpath(path), target)
            found[target] = package_of[target]
        if merged(path) != target:
            link(root, merged(path), target)
    for folder in ("lib", "lib64"):
        if os.path.isdir(f"{root}/usr/{folder}"):
            os.symlink(f"usr/{folder}", f"{root}/{folder}")
    return found


def add_roots(root):
    """The package's own, not those that somebody added to this machine."""
    parts = sorted(path for path in files_of(ROOTS) if path.startswith(ROOTS_FOLDER) and path.endswith(".crt"))
    text = ""
    for path in parts:
        with open(path, encoding="ascii") as file:
            text += file.read().rstrip("\n") + "\n"
    write(root, ROOTS_BUNDLE, text)
    link(root, "/usr/lib/ssl/cert.pem", ROOTS_BUNDLE)
    return {ROOTS_BUNDLE: ROOTS}


def add_zones(root):
    found = {}
    for path in sorted(files_of(ZONES)):
        name = path.removeprefix(ZONES_FOLDER)
        if name == path or ZONES_UNUSED.match(name) or os.path.isdir(path):
            continue
        if os.path.islink(path):
            link(root, path, os.readlink(path))
        else:
            copy(root, path, path)
            found[path] = ZONES
    return found


def add_packages(root, packages):
    """For scanners, which find packages here, and what their licences ask for."""
    for package in packages:
        write(root, f"/var/lib/dpkg/status.d/{package}", run("dpkg-query", "--status", package))
        licence = f"/usr/share/doc/{package}/copyright"
        if os.path.isfile(licence):
            copy(root, os.path.realpath(licence), licence)


def add_system(root):
    write(root, "/etc/passwd", f"root:x:0:0:root:/:/sbin/nologin\nnonroot:x:{USER}:{USER}:nonroot:/:/sbin/nologin\n")
    write(root, "/etc/group", f"root:x:0:\nnonroot:x:{USER}:\n")
    # Without it the resolver asks DNS before it looks into /etc/hosts, where hostAliases are.
    write(root, "/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")
    copy(root, os.path.realpath("/etc/os-release"), "/etc/os-release")


def version_of(package):
    return run("dpkg-query", "--show", "--showformat=${Version} ${Architecture} ${source:Package} ${source:Version}",
               package).split()


def fill_debian(root, programs):
    """path -> package of the files of Debian that are now below the folder."""
    if not shutil.which("dpkg-query"):
        raise Unusable("this is no Debian: build the image with config/image/Containerfile")
    found = {**add_libraries(root, programs), **add_roots(root), **add_zones(root)}
    add_packages(root, sorted(set(found.values())))
    add_system(root)
    return found


def fill_programs(root, folder, licence):
    """Paths of the programs, without symbols, below the folder."""
    found = []
    os.makedirs(root + "/usr/bin", exist_ok=True)
    for name in PROGRAMS:
        path = f"/usr/bin/{name}"
        subprocess.run(["strip", "--strip-all", "-o", root + path, f"{folder}/{name}"], check=True)
        found.append(path)
    copy(root, licence, "/usr/share/doc/propeller/copyright")
    return found
