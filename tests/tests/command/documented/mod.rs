//! The examples of the help and of the README, and the files that the command prints for other programs.

mod completion;
mod examples;
mod installed_files;
mod readme;
