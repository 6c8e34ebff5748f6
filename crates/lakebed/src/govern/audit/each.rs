//! One task a dataset, a few at once; what they answer stays in the order of the datasets.

use std::collections::BTreeMap;

use tokio::task::JoinSet;

use crate::error::{Error, Result};

/// Of fewer tasks than these, one is done after the other.
const FEW: usize = 4;

/// The answers of the tasks, in their order.
pub(super) async fn in_order<T, F>(tasks: Vec<F>) -> Result<Vec<T>>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    if tasks.len() < FEW {
        let mut answers = Vec::new();
        for task in tasks {
            answers.push(task.await?);
        }
        return Ok(answers);
    }
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    let mut waiting = tasks.into_iter().enumerate();
    let (mut running, mut answers) = (JoinSet::new(), BTreeMap::new());
    loop {
        while running.len() < at_once
            && let Some((at, task)) = waiting.next()
        {
            running.spawn(async move { (at, task.await) });
        }
        let Some(ended) = running.join_next().await else {
            return Ok(answers.into_values().collect());
        };
        let (at, answer) = ended.map_err(|e| Error::internal("look at a dataset").caused_by(e))?;
        answers.insert(at, answer?);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn answers_keep_the_order_of_their_tasks() {
        for count in [0_usize, 3, 40] {
            let task = |n| async move {
                for _ in 0..count - n {
                    tokio::task::yield_now().await;
                }
                Ok(n)
            };
            let answers = in_order((0..count).map(task).collect()).await.unwrap();
            assert_eq!(answers, (0..count).collect::<Vec<_>>());
        }
        let task = |n| async move {
            match n {
                7 => Err(Error::not_found("the seventh")),
                n => Ok(n),
            }
        };
        let error = in_order((0..20).map(task).collect()).await.unwrap_err();
        assert_eq!(error.message(), "the seventh");
    }
}
